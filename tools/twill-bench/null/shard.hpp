// null_shard: one thread of the null server (server.hpp), with its io_context, its listening socket
// and its connections.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "tools/twill-bench/null/replies.hpp"
#include "tools/twill-bench/null/sender.hpp"
#include "tools/twill-bench/null/server.hpp"
#include "tools/twill-bench/null/wait_queue.hpp"

namespace twill::bench {

class null_shard {
public:
  null_shard(const null_options& options, boost::asio::ip::tcp::endpoint where);

  boost::asio::ip::tcp::endpoint where() const { return acceptor_.local_endpoint(); }
  void run() { context_.run(); }
  void stop() { context_.stop(); }

private:
  template <class T>
  using awaitable = boost::asio::awaitable<T>;
  using sender_ptr = std::shared_ptr<sender>;
  using request_type = boost::beast::http::request<boost::beast::http::string_body>;

  awaitable<void> accept_all();
  awaitable<void> serve(std::shared_ptr<boost::beast::tcp_stream> stream);
  awaitable<bool> answer(const sender_ptr& out, const request_type& request);
  awaitable<bool> stream_events(const sender_ptr& out, const null_request& asked,
                                const null_replies& says);
  awaitable<void> serve_socket(boost::beast::tcp_stream& stream, sender_ptr out, std::string target,
                               boost::beast::flat_buffer& buffer);
  awaitable<void> stream_frames(sender_ptr out, std::string target, std::string message);
  awaitable<void> before_token(boost::asio::steady_timer& timer, std::int64_t i);
  awaitable<void> pause(boost::asio::steady_timer& timer, std::chrono::microseconds span);
  awaitable<void> turn();

  null_options options_;
  boost::asio::io_context context_{1};
  boost::asio::ip::tcp::acceptor acceptor_{context_};
  /// Generations without delays between tokens wait here; each sends one piece per round.
  wait_queue round_;
};

} // namespace twill::bench
