#include "tests/net/support/tls_handshake.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <memory>

#include "net/connection/openssl_objects.hpp"

namespace twill::testing {
namespace {

using ssl_ptr = std::unique_ptr<SSL, net::releaser<SSL_free>>;
using context_ptr = std::unique_ptr<SSL_CTX, net::releaser<SSL_CTX_free>>;

std::string pem_of(X509* certificate) {
  const net::bio_ptr text(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(text.get(), certificate);
  char* data = nullptr;
  const auto size = BIO_get_mem_data(text.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

std::string reason() {
  const char* text = ERR_reason_error_string(ERR_get_error());
  ERR_clear_error();
  return text == nullptr ? "a fault" : text;
}

void trust(SSL_CTX* client, const std::string& root) {
  const net::bio_ptr text(BIO_new_mem_buf(root.data(), static_cast<int>(root.size())));
  const net::certificate_ptr trusted(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
  X509_STORE_add_cert(SSL_CTX_get_cert_store(client), trusted.get());
  SSL_CTX_set_verify(client, SSL_VERIFY_PEER, nullptr);
}

/// Runs the sides in turns. Returns true once the client's handshake is complete.
bool run(SSL* client, SSL* server) {
  for (int i = 0; i < 100; ++i) {
    const int done = SSL_do_handshake(client);
    if (done == 1) return true;
    if (SSL_get_error(client, done) != SSL_ERROR_WANT_READ) return false;
    const int answered = SSL_do_handshake(server);
    if (answered != 1 && SSL_get_error(server, answered) != SSL_ERROR_WANT_READ) return false;
  }
  return false;
}

} // namespace

handshake shake_hands(const net::tls_context& server, const std::string& root) {
  const context_ptr client(SSL_CTX_new(TLS_client_method()));
  if (!root.empty()) trust(client.get(), root);
  const ssl_ptr here(SSL_new(client.get())), there(SSL_new(server.get()));
  BIO *of_client = nullptr, *of_server = nullptr;
  BIO_new_bio_pair(&of_client, 1 << 16, &of_server, 1 << 16);
  SSL_set_bio(here.get(), of_client, of_client); // each owns its end now
  SSL_set_bio(there.get(), of_server, of_server);
  SSL_set_connect_state(here.get());
  SSL_set_accept_state(there.get());
  ERR_clear_error();
  handshake out;
  if (!run(here.get(), there.get())) {
    out.fault = reason();
    return out;
  }
  const STACK_OF(X509)* chain = SSL_get_peer_cert_chain(here.get());
  for (int i = 0; i < sk_X509_num(chain); ++i)
    out.shown.push_back(pem_of(sk_X509_value(chain, i)));
  return out;
}

std::vector<std::string> authorities_of(const net::tls_context& client) {
  std::vector<std::string> pems;
  const auto* all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(client.get()));
  for (int i = 0; i < sk_X509_OBJECT_num(all); ++i)
    if (X509* one = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i)); one != nullptr)
      pems.push_back(pem_of(one));
  return pems;
}

} // namespace twill::testing
