// http_connection: a socket, the bytes that were read from it, and the deadline of its operations.
// Only one thread may use an object. Pending operations keep the object alive.
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
  boost::beast::flat_buffer buffer; ///< bytes that were read but not yet parsed
  clock::time_point read_at{};      ///< when the latest read completed
  bool used = false;                ///< it has already carried a reply

  /// Operations that still run at the deadline end with an error, for which cause() returns
  /// beast::error::timeout.
  void limit(clock::time_point deadline);
  void unlimited() { deadline_ = clock::time_point::max(); }
  /// Replaces `error` by beast::error::timeout when the deadline ended the operation.
  boost::system::error_code cause(const boost::system::error_code& error) const;
  /// Reads once and parses the bytes. When the connection has ended, it reports the end of the
  /// input to the parser of the reply.
  boost::asio::awaitable<boost::system::error_code> read(http_reply& reply);
  boost::system::error_code parse(http_reply& reply) { return reply.parse(buffer); }
  void shut();

private:
  void watch();

  /// One timer for all requests; when it expires, it checks whether the deadline has moved.
  boost::asio::steady_timer timer;
  clock::time_point deadline_ = clock::time_point::max();
  bool watching_ = false, timed_out_ = false;
};

} // namespace twill::bench
