// sender: writes bytes to one connection, in the order of the calls to send(). It first writes as
// much as the socket takes without blocking and keeps the rest in a buffer for asynchronous writes.
//
// Only one thread may use an object. A pending write keeps the object alive.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/tcp_stream.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace twill::bench {

class sender : public std::enable_shared_from_this<sender> {
public:
  explicit sender(std::shared_ptr<boost::beast::tcp_stream> stream);

  void send(std::string_view bytes);
  /// True when the buffer is empty, so that the caller may send more.
  bool clear() const { return in_write_.empty() && unsent_.empty(); }
  /// Completes when clear() or closed() has become true.
  boost::asio::awaitable<void> cleared();
  /// True after a write error or close(). send() then does nothing.
  bool closed() const { return closed_; }
  void close();

private:
  void write();

  std::shared_ptr<boost::beast::tcp_stream> stream_;
  boost::asio::ip::tcp::socket& socket_;
  std::string in_write_, unsent_;
  boost::asio::steady_timer waiting_; ///< never expires; cancelled to wake cleared()
  bool closed_ = false;
};

} // namespace twill::bench
