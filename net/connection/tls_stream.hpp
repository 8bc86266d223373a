// tls_stream: TLS over one socket. OpenSSL reads and writes the socket itself, so that an idle
// connection holds no buffers of ours.
//
// On the socket's strand. One read and one write may be under way at once. The stream must outlive
// its operations; close() ends them. A completion is called on the strand, never from within the
// function that began it.
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

/// TCP and Unix sockets alike.
using client_socket = asio::generic::stream_protocol::socket;

/// A handler of any type, called once. It lets TLS be compiled once for all who use it.
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
  /// The side that accepts.
  tls_stream(client_socket socket, tls_context context);
  /// The side that connects; the certificate must be for `host`, a name or an address.
  tls_stream(client_socket socket, tls_context context, const std::string& host);
  ~tls_stream();
  tls_stream(const tls_stream&) = delete;
  tls_stream& operator=(const tls_stream&) = delete;

  client_socket& socket() noexcept { return socket_; }

  void handshake(io_completion done);
  void read_some(asio::mutable_buffer to, io_completion done);
  void write_some(asio::const_buffer from, io_completion done);
  /// Room for short buffers that are joined, so that they become one record.
  std::string& scratch() noexcept { return scratch_; }
  /// Says that nothing more will be sent.
  void shutdown_send();

  /// Why the certificate of the other side was refused; empty when it was not.
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
