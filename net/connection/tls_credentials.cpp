#include "net/connection/tls_credentials.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <stdexcept>
#include <utility>

#include "net/connection/openssl_objects.hpp"

namespace twill::net {
namespace {

std::string reason() {
  const auto code = ERR_peek_last_error();
  ERR_clear_error();
  const char* text = code == 0 ? nullptr : ERR_reason_error_string(code);
  return text == nullptr ? "not valid PEM" : text;
}

bio_ptr memory(const std::string& text) {
  return bio_ptr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// A key with a passphrase is refused: there is nobody to ask.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

/// The first protocol that both sides speak is HTTP/1.1, or there is none.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_length,
                    const unsigned char* offered, unsigned offered_length, void*) {
  static const unsigned char ours[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_length, ours, sizeof ours - 1, offered, offered_length) !=
      OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

tls_context make_context(const SSL_METHOD* method) {
  tls_context made(SSL_CTX_new(method), [](SSL_CTX* c) { SSL_CTX_free(c); });
  if (!made) throw std::runtime_error("no TLS: " + reason());
  SSL_CTX_set_min_proto_version(made.get(), TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(made.get(), "ECDHE+AESGCM:ECDHE+CHACHA20"); // of TLS 1.2
  SSL_CTX_set_options(made.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(made.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                   SSL_MODE_RELEASE_BUFFERS);
  return made;
}

/// The server's own certificate, then those between it and its authority.
std::string use_certificates(SSL_CTX* context, const std::string& pem) {
  const auto bio = memory(pem);
  const certificate_ptr own(PEM_read_bio_X509_AUX(bio.get(), nullptr, no_passphrase, nullptr));
  if (!own || SSL_CTX_use_certificate(context, own.get()) != 1) return reason();
  while (certificate_ptr next{PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr)})
    if (SSL_CTX_add1_chain_cert(context, next.get()) != 1) return reason();
  ERR_clear_error(); // the end of the file is an error to OpenSSL
  return {};
}

} // namespace

tls_credentials::tls_credentials(std::string certificate_file, std::string key_file,
                                 const file_reader& read)
    : certificate_file_(std::move(certificate_file)), key_file_(std::move(key_file)) {
  if (const auto fault = reload(read); !fault.empty()) throw std::runtime_error(fault);
}

std::string tls_credentials::reload(const file_reader& read) {
  const auto certificate = read(certificate_file_);
  if (!certificate.ok()) return "`server.tls_certificate` cannot be read: " + certificate.detail();
  const auto key = read(key_file_);
  if (!key.ok()) return "`server.tls_key` cannot be read: " + key.detail();
  const auto context = make_context(TLS_server_method());
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
  if (const auto fault = use_certificates(context.get(), certificate.value()); !fault.empty())
    return "`server.tls_certificate` must be a PEM file with a certificate, got " +
           certificate_file_ + ": " + fault;
  const auto bio = memory(key.value());
  const key_ptr loaded(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  if (!loaded)
    return "`server.tls_key` must be a PEM file with a key that has no passphrase, got " +
           key_file_ + ": " + reason();
  if (SSL_CTX_use_PrivateKey(context.get(), loaded.get()) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1)
    return "`server.tls_key` must be the key of `server.tls_certificate`, got " + key_file_ + ": " +
           reason();
  const std::lock_guard lock(mutex_);
  current_ = context;
  return {};
}

tls_context tls_credentials::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

tls_context make_client_context(const std::string& authorities_file) {
  const auto context = make_context(TLS_client_method());
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  const int found =
      authorities_file.empty()
          ? SSL_CTX_set_default_verify_paths(context.get())
          : SSL_CTX_load_verify_locations(context.get(), authorities_file.c_str(), nullptr);
  if (found != 1)
    throw std::runtime_error("`--cacert` must be a PEM file with certificates, got \"" +
                             authorities_file + "\": " + reason());
  return context;
}

} // namespace twill::net
