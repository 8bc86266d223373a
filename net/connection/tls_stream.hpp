// tls_stream: TLS over one socket. OpenSSL reads and writes the socket directly, so an idle
// connection needs no buffers in this class.
//
// Use it on the socket's strand. One read and one write may be in progress at the same time. The
// stream must outlive its operations; closing the socket ends them. A completion handler is called
// on the strand, and never from within the function that started the operation.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "net/beast.hpp"
#include "net/connection/tls_credentials.hpp"

struct ssl_st;

namespace twill::net {

/// The socket type for both TCP and Unix sockets.
using client_socket = asio::generic::stream_protocol::socket;

/// A type-erased completion handler that is called once. With it, the TLS code is compiled only
/// once, whatever types its callers' handlers have.
class io_completion {
public:
  template <class Handler>
  explicit io_completion(Handler handler)
      : held_(std::make_unique<holder<Handler>>(std::move(handler))) {}
  void operator()(error_code error, std::size_t n) { std::exchange(held_, {})->call(error, n); }

private:
  struct base {
    virtual ~base() = default;
    virtual void call(error_code error, std::size_t n) = 0;
  };
  template <class Handler>
  struct holder final : base {
    explicit holder(Handler h) : handler(std::move(h)) {}
    void call(error_code error, std::size_t n) override { std::move(handler)(error, n); }
    Handler handler;
  };
  std::unique_ptr<base> held_;
};

class tls_stream {
public:
  /// Makes the server side of a connection.
  tls_stream(client_socket socket, tls_context context);
  /// Makes the client side of a connection. The server's certificate must be valid for `host`, a
  /// host name or an IP address.
  tls_stream(client_socket socket, tls_context context, const std::string& host);
  ~tls_stream();
  tls_stream(const tls_stream&) = delete;
  tls_stream& operator=(const tls_stream&) = delete;

  client_socket& socket() noexcept { return socket_; }

  void handshake(io_completion done);
  void read_some(asio::mutable_buffer to, io_completion done);
  void write_some(asio::const_buffer from, io_completion done);
  /// Memory in which a caller may join short buffers, so that they are sent as one TLS record.
  std::string& scratch() noexcept { return scratch_; }
  /// Sends TLS's close_notify alert, if the handshake is complete, and closes the sending direction
  /// of the socket.
  void shutdown_send();

  /// Returns why the peer's certificate was rejected, or an empty string if it was accepted.
  std::string verdict() const;

private:
  enum class step { handshake, read, write };
  struct operation;

  void run(operation what, bool inside);

  client_socket socket_;
  tls_context context_;
  struct free_ssl {
    void operator()(ssl_st* ssl) const;
  };
  std::unique_ptr<ssl_st, free_ssl> ssl_;
  std::string scratch_;
};

} // namespace twill::net
