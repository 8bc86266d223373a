#include "tests/net/support/tls_client.hpp"

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdexcept>
#include <utility>

#include "tests/net/support/pem_objects.hpp"

namespace twill::testing {
namespace {

using std::chrono::milliseconds;

using context_ptr = std::unique_ptr<SSL_CTX, net::releaser<SSL_CTX_free>>;

std::string common_name(const X509* of) {
  char name[256] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(of), NID_commonName, name, sizeof name);
  return name;
}

context_ptr context_of(const tls_client::options& how) {
  context_ptr context(made(SSL_CTX_new(TLS_client_method())));
  if (how.old) {
    SSL_CTX_set_min_proto_version(context.get(), TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context.get(), TLS1_1_VERSION);
    SSL_CTX_set_cipher_list(context.get(), "ALL:@SECLEVEL=0");
  }
  if (!how.trusted.empty()) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    const auto trusted = certificate_of(how.trusted);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), trusted.get());
  }
  std::string offered; // each name after its length
  for (const auto& name : how.protocols)
    offered += static_cast<char>(name.size()) + name;
  if (!offered.empty())
    SSL_CTX_set_alpn_protos(context.get(), reinterpret_cast<const unsigned char*>(offered.data()),
                            static_cast<unsigned>(offered.size()));
  return context;
}

} // namespace

void tls_client::free_ssl::operator()(ssl_st* ssl) const {
  SSL_free(ssl);
}

tls_client::tls_client(std::uint16_t port, const options& how)
    : client(port, how.receive_buffer_bytes), ssl_(made(SSL_new(context_of(how).get()))) {
  SSL_set_connect_state(ssl_.get());
  auto from_server = empty_memory(), to_server = empty_memory();
  SSL_set_bio(ssl_.get(), from_server.release(), to_server.release()); // ssl_ owns both now
  shake_hands();
}

bool tls_client::flush() {
  std::string bytes;
  char some[16 * 1024];
  for (int n; (n = BIO_read(SSL_get_wbio(ssl_.get()), some, sizeof some)) > 0;)
    bytes.append(some, static_cast<std::size_t>(n));
  return client::try_send(bytes);
}

void tls_client::shake_hands() {
  for (;;) {
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl_.get());
    const int fault = SSL_get_error(ssl_.get(), done);
    const bool sent = flush();
    if (done == 1 && sent) return;
    if (fault != SSL_ERROR_WANT_READ) fail_with_reason();
    std::string bytes;
    if (!receive(bytes, std::chrono::seconds(5)))
      throw std::runtime_error("closed in the handshake");
    BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
  }
}

bool tls_client::try_send(std::string_view bytes) {
  if (bytes.empty()) return true;
  ERR_clear_error();
  return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0 && flush();
}

bool tls_client::fill(milliseconds within) {
  for (;;) {
    char some[16 * 1024];
    ERR_clear_error();
    const int n = SSL_read(ssl_.get(), some, sizeof some);
    if (n > 0) {
      in_.append(some, static_cast<std::size_t>(n));
      return true;
    }
    const int fault = SSL_get_error(ssl_.get(), n);
    if (fault == SSL_ERROR_ZERO_RETURN) {
      end_reported_ = true;
      return false;
    }
    if (fault != SSL_ERROR_WANT_READ) fail_with_reason();
    std::string bytes;
    if (!flush() || !receive(bytes, within)) return false;
    BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
  }
}

std::string tls_client::version() const {
  return SSL_get_version(ssl_.get());
}

std::string tls_client::protocol() const {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &name, &size);
  return name == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(name), size);
}

std::string tls_client::server_name() const {
  const certificate_ptr shown(made(SSL_get1_peer_certificate(ssl_.get())));
  return common_name(shown.get());
}

std::vector<std::string> tls_client::shown() const {
  std::vector<std::string> pems;
  const STACK_OF(X509)* chain = SSL_get_peer_cert_chain(ssl_.get());
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    const auto text = empty_memory();
    PEM_write_bio_X509(text.get(), sk_X509_value(chain, i));
    pems.push_back(text_of(text));
  }
  return pems;
}

} // namespace twill::testing
