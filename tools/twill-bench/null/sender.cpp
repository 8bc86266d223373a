#include "tools/twill-bench/null/sender.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <utility>

namespace twill::bench {

namespace asio = boost::asio;
using boost::system::error_code;

sender::sender(std::shared_ptr<boost::beast::tcp_stream> stream)
    : stream_(std::move(stream)), socket_(stream_->socket()),
      waiting_(stream_->get_executor(), asio::steady_timer::time_point::max()) {
  error_code ignored;
  socket_.non_blocking(true, ignored);
}

void sender::send(std::string_view bytes) {
  if (closed_) return;
  if (clear()) {
    error_code error;
    bytes.remove_prefix(socket_.write_some(asio::buffer(bytes), error));
    if (error && error != asio::error::would_block) return close();
  }
  unsent_ += bytes;
  if (in_write_.empty() && !unsent_.empty()) write();
}

void sender::write() {
  in_write_.swap(unsent_);
  asio::async_write(socket_, asio::buffer(in_write_),
                    [self = shared_from_this()](const error_code& error, std::size_t) {
                      self->in_write_.clear();
                      if (error) return self->close();
                      if (!self->unsent_.empty()) return self->write();
                      self->waiting_.cancel();
                    });
}

asio::awaitable<void> sender::cleared() {
  error_code ignored;
  while (!clear() && !closed_)
    co_await waiting_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

void sender::close() {
  closed_ = true;
  waiting_.cancel();
}

} // namespace twill::bench
