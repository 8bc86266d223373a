#include "net/connection/tls_credentials.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "net/connection/openssl_objects.hpp"

namespace twill::net {
namespace {

/// The size limit of the file with authorities. A system's whole set takes about 250 kB.
constexpr std::int64_t most_authorities_bytes = std::int64_t{64} << 20;

std::string reason() {
  const auto code = ERR_peek_last_error();
  ERR_clear_error();
  const char* text = code == 0 ? nullptr : ERR_reason_error_string(code);
  return text == nullptr ? "not valid PEM" : text;
}

bio_ptr memory(const std::string& text) {
  return bio_ptr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// A callback for OpenSSL that fails, so that keys with a passphrase are refused: a daemon has
/// nobody to type the passphrase.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

/// Selects HTTP/1.1 by ALPN; the handshake fails if the client does not offer HTTP/1.1.
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
  SSL_CTX_set_cipher_list(made.get(), "ECDHE+AESGCM:ECDHE+CHACHA20"); // for TLS 1.2 only
  SSL_CTX_set_options(made.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(made.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                   SSL_MODE_RELEASE_BUFFERS);
  return made;
}

std::size_t count_of(std::string_view what, std::string_view in) {
  std::size_t n = 0;
  for (auto at = in.find(what); at != in.npos; at = in.find(what, at + what.size()))
    ++n;
  return n;
}

struct read_certificates {
  std::vector<certificate_ptr> all;
  std::string fault; ///< empty: none
};

/// Reads the certificates of a PEM file. The function ignores text between PEM blocks, and blocks
/// that are not certificates. A damaged block is an error, because a chain that lacks one of its
/// certificates would work only for clients that have the missing certificate already.
read_certificates certificates_of(const std::string& pem) {
  const auto bio = memory(pem);
  read_certificates read;
  const auto refuse = [&](const std::string& why) {
    read.fault = "certificate " + std::to_string(read.all.size() + 1) + ": " + why;
    return std::move(read);
  };
  std::size_t blocks = 0;
  for (;; ++blocks) {
    pem_block block;
    if (PEM_read_bio(bio.get(), &block.name, &block.header, &block.data, &block.bytes) != 1) {
      // OpenSSL reports the end of the file as the error PEM_R_NO_START_LINE.
      if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) return refuse(reason());
      ERR_clear_error();
      break;
    }
    const std::string_view name = block.name;
    const bool trusted = name == PEM_STRING_X509_TRUSTED;
    if (!trusted && name != PEM_STRING_X509 && name != PEM_STRING_X509_OLD) continue;
    const unsigned char* at = block.data;
    certificate_ptr one(trusted ? d2i_X509_AUX(nullptr, &at, block.bytes)
                                : d2i_X509(nullptr, &at, block.bytes));
    if (!one) return refuse(reason());
    read.all.push_back(std::move(one));
  }
  // OpenSSL silently skips a block with a damaged first line, and also the block that follows a
  // damaged last line.
  if (count_of("-----BEGIN ", pem) != blocks || count_of("-----END ", pem) != blocks)
    return refuse("a block without its first or its last line");
  if (read.all.empty()) return refuse("there is none");
  return read;
}

/// Sets the server's own certificate, which is the first in `pem`, and the intermediate
/// certificates that follow it. Returns an error text, or an empty string.
std::string use_certificates(SSL_CTX* context, const std::string& pem) {
  const auto read = certificates_of(pem);
  if (!read.fault.empty()) return read.fault;
  if (SSL_CTX_use_certificate(context, read.all.front().get()) != 1) return reason();
  for (std::size_t i = 1; i < read.all.size(); ++i)
    if (SSL_CTX_add1_chain_cert(context, read.all[i].get()) != 1) return reason();
  return {};
}

/// Adds the certificates of `pem` to the authorities that a client trusts. Returns an error text,
/// or an empty string.
std::string trust_certificates(SSL_CTX* context, const std::string& pem) {
  const auto read = certificates_of(pem);
  if (!read.fault.empty()) return read.fault;
  for (const auto& one : read.all)
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), one.get()) != 1) return reason();
  return {};
}

/// Returns whether the public key of `certificate` verifies a signature made with `key`. OpenSSL's
/// own check compares only the public parts, which are intact even in a key whose secret part is
/// damaged. The digest is the default of the key's type.
bool signs_for(EVP_PKEY* key, X509* certificate) {
  static constexpr unsigned char text[] = "twill";
  const digest_ptr signing(EVP_MD_CTX_new()), verifying(EVP_MD_CTX_new());
  std::size_t size = 0;
  if (EVP_DigestSignInit(signing.get(), nullptr, nullptr, nullptr, key) != 1 ||
      EVP_DigestSign(signing.get(), nullptr, &size, text, sizeof text) != 1)
    return false;
  std::vector<unsigned char> signature(size);
  return EVP_DigestSign(signing.get(), signature.data(), &size, text, sizeof text) == 1 &&
         EVP_DigestVerifyInit(verifying.get(), nullptr, nullptr, nullptr,
                              X509_get0_pubkey(certificate)) == 1 &&
         EVP_DigestVerify(verifying.get(), signature.data(), size, text, sizeof text) == 1;
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
    return "`server.tls_certificate` must be a PEM file with a certificate, then those between it "
           "and its authority, got " +
           certificate_file_ + ": " + fault;
  const auto bio = memory(key.value());
  const key_ptr loaded(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  if (!loaded)
    return "`server.tls_key` must be a PEM file with a key that has no passphrase, got " +
           key_file_ + ": " + reason();
  if (SSL_CTX_use_PrivateKey(context.get(), loaded.get()) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1 ||
      !signs_for(loaded.get(), SSL_CTX_get0_certificate(context.get())))
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
  std::string fault;
  if (authorities_file.empty()) {
    if (SSL_CTX_set_default_verify_paths(context.get()) != 1) fault = reason();
  } else if (const auto pem = read_file(authorities_file, most_authorities_bytes); !pem.ok()) {
    fault = pem.detail();
  } else {
    fault = trust_certificates(context.get(), pem.value());
  }
  if (!fault.empty())
    throw std::runtime_error("`--cacert` must be a PEM file with certificates, got \"" +
                             authorities_file + "\": " + fault);
  return context;
}

} // namespace twill::net
