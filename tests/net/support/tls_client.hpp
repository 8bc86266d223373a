// tls_client: the blocking client over TLS, which records the certificates that the server sent.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/net/support/client.hpp"
#include "tests/net/support/identities.hpp"

struct ssl_st;

namespace twill::testing {

class tls_client final : public client {
public:
  struct options {
    std::string trusted;                ///< PEM certificates; empty: whatever the server has
    std::vector<std::string> protocols; ///< offered by ALPN
    bool old = false;                   ///< supports TLS 1.1 and nothing newer
    int receive_buffer_bytes = 0;
  };

  /// Connects and completes the handshake. Throws if that fails.
  explicit tls_client(std::uint16_t port) : tls_client(port, options()) {}
  tls_client(std::uint16_t port, const options& how);

  bool try_send(std::string_view bytes) override;

  std::string version() const;
  std::string protocol() const;    ///< the protocol that ALPN has chosen
  std::string server_name() const; ///< the common name of the server's certificate
  /// The certificates that the server sent, in its order, as PEM.
  std::vector<std::string> shown() const;
  /// Whether the server said that nothing more would come, before it closed.
  bool end_was_reported() const { return end_reported_; }

private:
  bool fill(std::chrono::milliseconds within) override;
  void shake_hands();
  bool flush(); ///< sends what OpenSSL has made

  struct free_ssl {
    void operator()(ssl_st* ssl) const;
  };
  std::unique_ptr<ssl_st, free_ssl> ssl_;
  bool end_reported_ = false;
};

} // namespace twill::testing
