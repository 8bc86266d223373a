// tls_credentials: the server's certificate and private key (`server.tls_certificate`,
// `server.tls_key`), together with the settings of every TLS connection: TLS 1.2 or newer, ciphers
// with forward secrecy and authenticated encryption, HTTP/1.1 by ALPN.
//
// Thread safety: any thread may call all functions. reload() reads the files again; existing
// connections keep the context with which they began.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "config/base/read_file.hpp"

struct ssl_ctx_st;

namespace twill::net {

using tls_context = std::shared_ptr<ssl_ctx_st>;

class tls_credentials {
public:
  /// Throws std::runtime_error when the certificate and the key cannot be used.
  tls_credentials(std::string certificate_file, std::string key_file, const file_reader& read);

  /// Returns an empty string if the new certificate and key are in use; otherwise the reason, and
  /// the old pair stays in use.
  std::string reload(const file_reader& read);
  tls_context current() const;

private:
  std::string certificate_file_;
  std::string key_file_;
  mutable std::mutex mutex_;
  tls_context current_;
};

/// Returns a context for clients. It trusts the system's certificate authorities or, if
/// `authorities_file` is not empty, only the authorities in that PEM file. Throws
/// std::runtime_error if the authorities cannot be loaded.
tls_context make_client_context(const std::string& authorities_file);

} // namespace twill::net
