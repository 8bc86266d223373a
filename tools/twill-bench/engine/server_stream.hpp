// server_stream: a connected byte stream to the server under test: a TCP socket, with TLS where the
// server's address asks for it. It meets Asio's requirements of an AsyncStream.
//
// Use it on the thread of its io_context. It must outlive its operations; close() ends them.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/connection/tls_stream.hpp"
#include "tools/twill-bench/engine/endpoint.hpp"
#include "tools/twill-bench/engine/record.hpp"

namespace twill::bench {

/// Where to connect to, and how to verify the server.
struct server_address {
  std::vector<boost::asio::ip::tcp::endpoint> endpoints;
  std::string host;     ///< the name or address that the server's certificate must be valid for
  net::tls_context tls; ///< null: no TLS
};

/// Resolves the host name. Throws std::runtime_error when it cannot be resolved, or when the file
/// of trusted authorities `authorities_file` (--cacert; empty: the system's) cannot be read.
server_address find_server(const endpoint& where, const std::string& authorities_file);

/// The message for the user about a certificate that is not trusted.
std::string untrusted_text(const std::string& why);

class server_stream {
public:
  using executor_type = boost::asio::any_io_executor;

  explicit server_stream(boost::asio::io_context& context) : socket_(context), timer_(context) {}
  server_stream(const server_stream&) = delete;
  server_stream& operator=(const server_stream&) = delete;

  executor_type get_executor() { return socket_.get_executor(); }

  /// Connects by TCP, then does the TLS handshake. A certificate that is not trusted gives
  /// boost::asio::error::no_permission, and why_untrusted() then gives the reason.
  boost::asio::awaitable<boost::system::error_code> connect(const server_address& to,
                                                            clock::time_point deadline);
  const std::string& why_untrusted() const { return why_untrusted_; }

  /// At `deadline` the stream is closed, which ends the operations that still run.
  void expires_at(clock::time_point deadline);
  void expires_never() { timer_.cancel(); }
  /// Replaces `error` by beast::error::timeout when the deadline ended the operation.
  boost::system::error_code cause(const boost::system::error_code& error) const;

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& to, Token&& token) {
    if (!tls_) return socket_.async_read_some(to, std::forward<Token>(token));
    boost::asio::mutable_buffer first;
    for (auto at = boost::asio::buffer_sequence_begin(to);
         at != boost::asio::buffer_sequence_end(to); ++at)
      if (first.size() == 0) first = *at;
    return boost::asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        [this](auto handler, boost::asio::mutable_buffer into) {
          tls_->read_some(into, net::io_completion(std::move(handler)));
        },
        token, first);
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& from, Token&& token) {
    if (!tls_) return socket_.async_write_some(from, std::forward<Token>(token));
    boost::asio::const_buffer first;
    for (auto at = boost::asio::buffer_sequence_begin(from);
         at != boost::asio::buffer_sequence_end(from); ++at)
      if (first.size() == 0) first = *at;
    return boost::asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        [this](auto handler, boost::asio::const_buffer of) {
          tls_->write_some(of, net::io_completion(std::move(handler)));
        },
        token, first);
  }

  /// Closes the socket at once, without a TLS shutdown.
  void close();

private:
  boost::asio::ip::tcp::socket socket_; ///< not used while TLS is
  std::unique_ptr<net::tls_stream> tls_;
  boost::asio::steady_timer timer_;
  bool timed_out_ = false;
  std::string why_untrusted_;
  /// Lets the handler of a timer that expired too late to be cancelled detect that the stream was
  /// destroyed.
  std::shared_ptr<server_stream*> self_ = std::make_shared<server_stream*>(this);
};

// Beast finds this function by argument-dependent lookup.
inline void beast_close_socket(server_stream& stream) {
  stream.close();
}

} // namespace twill::bench
