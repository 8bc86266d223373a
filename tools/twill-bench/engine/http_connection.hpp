// http_connection: a socket with what it has read and a limit of its time. One thread; pending
// operations hold it alive.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include <memory>

#include "tools/twill-bench/engine/http_reply.hpp"
#include "tools/twill-bench/engine/record.hpp"
#include "tools/twill-bench/engine/server_stream.hpp"

namespace twill::bench {

struct http_connection : std::enable_shared_from_this<http_connection> {
  explicit http_connection(boost::asio::io_context& context) : stream(context), timer(context) {}

  server_stream stream;
  boost::beast::flat_buffer buffer; ///< read and not parsed
  clock::time_point read_at{};      ///< when the latest read completed
  bool used = false;                ///< it has carried a reply

  /// What runs then ends with beast::error::timeout, see cause().
  void limit(clock::time_point deadline);
  void unlimited() { deadline_ = clock::time_point::max(); }
  /// Why an operation ended with that error.
  boost::system::error_code cause(const boost::system::error_code& error) const;
  /// Reads once and parses it, if the connection ended as its end.
  boost::asio::awaitable<boost::system::error_code> read(http_reply& reply);
  boost::system::error_code parse(http_reply& reply) { return reply.parse(buffer); }
  void shut();

private:
  void watch();

  boost::asio::steady_timer timer; ///< one wait for all requests: it looks again when it is due
  clock::time_point deadline_ = clock::time_point::max();
  bool watching_ = false, timed_out_ = false;
};

} // namespace twill::bench
