// outlet: what leaves on one connection, in the order it was sent. What the kernel takes at once
// goes in one write; the rest waits here. One thread; a pending write holds it alive.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/tcp_stream.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace twill::bench {

class outlet : public std::enable_shared_from_this<outlet> {
public:
  explicit outlet(std::shared_ptr<boost::beast::tcp_stream> stream);

  void send(std::string_view bytes);
  /// Nothing waits to be written: more may be sent.
  bool clear() const { return in_write_.empty() && unsent_.empty(); }
  /// Until it is clear or closed.
  boost::asio::awaitable<void> cleared();
  /// The peer went away; nothing is sent any more.
  bool closed() const { return closed_; }
  void close();

private:
  void write();

  std::shared_ptr<boost::beast::tcp_stream> stream_;
  boost::asio::ip::tcp::socket& socket_;
  std::string in_write_, unsent_;
  boost::asio::steady_timer waiting_; ///< never due
  bool closed_ = false;
};

} // namespace twill::bench
