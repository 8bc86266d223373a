#include "tools/twill-bench/engine/http_connection.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/error.hpp>

namespace twill::bench {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t most_bytes_of_a_read = 16 * 1024;

void http_connection::limit(clock::time_point deadline) {
  deadline_ = deadline;
  if (!watching_ || deadline_ < timer.expiry()) watch();
}

error_code http_connection::cause(const error_code& error) const {
  return error && timed_out_ ? error_code(boost::beast::error::timeout) : error;
}

/// Restarts the timer. The wait that was pending completes as cancelled and does nothing.
void http_connection::watch() {
  watching_ = true;
  timer.expires_at(deadline_);
  timer.async_wait([held = weak_from_this()](const error_code& error) {
    const auto self = held.lock();
    if (error || !self) return;
    self->watching_ = false;
    if (self->deadline_ == clock::time_point::max()) return; // idle
    if (clock::now() < self->deadline_) return self->watch();
    self->timed_out_ = true;
    self->shut();
  });
}

asio::awaitable<error_code> http_connection::read(http_reply& reply) {
  error_code error;
  const std::size_t n = co_await stream.async_read_some(
      buffer.prepare(most_bytes_of_a_read), asio::redirect_error(asio::use_awaitable, error));
  read_at = clock::now();
  buffer.commit(n);
  if (error == asio::error::eof) co_return reply.parse_end();
  co_return error ? cause(error) : parse(reply);
}

void http_connection::shut() {
  stream.close();
}

} // namespace twill::bench
