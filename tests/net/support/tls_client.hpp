// tls_client: the blocking client over TLS, and certificates made on the spot to meet it with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/net/support/client.hpp"

struct ssl_st;

namespace twill::testing {

/// A certificate and its key, as PEM.
struct identity {
  std::string certificate;
  std::string key;
};

/// A certificate for `localhost` and 127.0.0.1 whose common name is `name`. Without an issuer it
/// signs itself.
identity make_identity(const std::string& name, const identity* issuer = nullptr);
/// The key, locked with a passphrase.
std::string locked_key(const identity& of);

class tls_client final : public client {
public:
  struct options {
    std::string trusted;                ///< PEM certificates; empty: whatever the server has
    std::vector<std::string> protocols; ///< offered by ALPN
    bool old = false;                   ///< speaks TLS 1.1 and nothing newer
    int receive_buffer_bytes = 0;
  };

  /// After the handshake; throws when that fails.
  explicit tls_client(std::uint16_t port) : tls_client(port, options()) {}
  tls_client(std::uint16_t port, const options& how);

  bool try_send(std::string_view bytes) override;

  std::string version() const;
  std::string protocol() const;    ///< that ALPN has chosen
  std::string server_name() const; ///< the common name of the server's certificate
  /// Whether the server said that nothing more would come, before it closed.
  bool was_told_of_end() const { return told_of_end_; }

private:
  bool fill(std::chrono::milliseconds within) override;
  void shake_hands();
  bool flush(); ///< sends what OpenSSL has made

  struct free_ssl {
    void operator()(ssl_st* ssl) const;
  };
  std::unique_ptr<ssl_st, free_ssl> ssl_;
  bool told_of_end_ = false;
};

} // namespace twill::testing
