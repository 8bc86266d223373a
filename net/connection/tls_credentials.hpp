// tls_credentials: the certificate and the key of this server (`server.tls_certificate`,
// `server.tls_key`), and the settings of every TLS connection: TLS 1.2 or newer, ciphers with
// forward secrecy and authentication, HTTP/1.1 by ALPN.
//
// Thread safety: any thread. reload() reads the files anew; connections keep what they began with.
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
  /// Throws std::runtime_error when the pair cannot be used.
  tls_credentials(std::string certificate_file, std::string key_file, const file_reader& read);

  /// Empty when the new pair is in force, else why it is not; the old one then stays.
  std::string reload(const file_reader& read);
  tls_context current() const;

private:
  std::string certificate_file_;
  std::string key_file_;
  mutable std::mutex mutex_;
  tls_context current_;
};

/// For clients: trusts the system's authorities, or only those of this PEM file. Throws
/// std::runtime_error.
tls_context make_client_context(const std::string& authorities_file);

} // namespace twill::net
