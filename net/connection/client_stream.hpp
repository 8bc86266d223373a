// client_stream: the byte stream to one client, a socket with or without TLS, in the form that
// Beast's HTTP and WebSocket code needs. It counts the bytes that the kernel takes for the client.
//
// Use it on the session's strand. Beast's WebSocket cannot close this stream: Beast would close
// right after sending its close frame, and if input is still unread at that time, the kernel resets
// the connection and the client may never see the close frame. The session closes the stream
// itself, after it has waited for the client to close its end. Where Beast closes a stream because
// of a time-out, this class only cancels the pending operations, which ends them too.
#pragma once

#include <algorithm>
#include <atomic>
#include <boost/asio/associator.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/handler_continuation_hook.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/role.hpp>
#include <cstdint>
#include <memory>
#include <utility>

#include "net/beast.hpp"
#include "net/connection/tls_stream.hpp"

namespace twill::net {

/// Adds the number of bytes written to a counter, then calls the wrapped handler.
template <class Handler>
struct counting_handler {
  Handler next;
  std::atomic<std::int64_t>* taken;

  void operator()(error_code error, std::size_t n) {
    // Only one thread at a time writes the counter, so no atomic read-modify-write is needed.
    if (taken != nullptr)
      taken->store(taken->load(std::memory_order_relaxed) + static_cast<std::int64_t>(n),
                   std::memory_order_relaxed);
    std::move(next)(error, n);
  }
  friend bool asio_handler_is_continuation(counting_handler* self) {
    using asio::asio_handler_is_continuation;
    return asio_handler_is_continuation(std::addressof(self->next));
  }
};

class client_stream {
public:
  using executor_type = client_socket::executor_type;

  explicit client_stream(client_socket socket) : socket_(std::move(socket)) {}
  /// `tls` must have completed its handshake.
  explicit client_stream(std::unique_ptr<tls_stream> tls)
      : socket_(tls->socket().get_executor()), tls_(std::move(tls)) {}

  executor_type get_executor() noexcept { return socket_.get_executor(); }
  /// Makes this stream add the number of bytes that it writes to the client to `taken`, which must
  /// stay valid until the next call of count_into() or the end of this stream.
  void count_into(std::atomic<std::int64_t>& taken) noexcept { taken_ = &taken; }

  template <class Buffers, class Handler>
  void async_read_some(const Buffers& to, Handler&& handler) {
    if (!tls_) return socket_.async_read_some(to, std::forward<Handler>(handler));
    asio::mutable_buffer first;
    for (auto at = asio::buffer_sequence_begin(to); at != asio::buffer_sequence_end(to); ++at)
      if (first.size() == 0) first = *at;
    tls_->read_some(first, io_completion(std::forward<Handler>(handler)));
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& from, Handler&& handler) {
    counting_handler<std::decay_t<Handler>> counting{std::forward<Handler>(handler), taken_};
    if (!tls_) return socket_.async_write_some(from, std::move(counting));
    tls_->write_some(joined(from), io_completion(std::move(counting)));
  }

  /// Closes the sending direction; reading is still possible.
  void shutdown_send() {
    if (tls_) return tls_->shutdown_send();
    error_code ignored;
    socket_.shutdown(client_socket::shutdown_send, ignored);
  }
  void cancel() {
    error_code ignored;
    lowest().cancel(ignored);
  }
  void close() {
    error_code ignored;
    lowest().close(ignored);
  }

private:
  client_socket& lowest() noexcept { return tls_ ? tls_->socket() : socket_; }

  /// Returns the first bytes to write. Short buffers, such as the header and the payload of a
  /// WebSocket frame, are joined so that they are sent as one TLS record.
  template <class Buffers>
  asio::const_buffer joined(const Buffers& from) {
    constexpr std::size_t record_bytes = 16 * 1024;
    asio::const_buffer first;
    std::size_t n = 0;
    for (auto at = asio::buffer_sequence_begin(from); at != asio::buffer_sequence_end(from); ++at) {
      const asio::const_buffer piece = *at;
      if (n == 0) first = piece;
      n += piece.size();
    }
    if (first.size() == n || first.size() >= record_bytes) return first;
    auto& scratch = tls_->scratch();
    scratch.resize(std::min(n, record_bytes));
    asio::buffer_copy(asio::buffer(scratch), from);
    return asio::buffer(scratch);
  }

  client_socket socket_;
  std::unique_ptr<tls_stream> tls_;
  std::atomic<std::int64_t>* taken_ = nullptr;
};

// Beast finds the next three functions by argument-dependent lookup.
inline void teardown(beast::role_type, client_stream&, error_code& error) {
  error = {};
}

template <class Handler>
void async_teardown(beast::role_type, client_stream& stream, Handler&& handler) {
  asio::post(stream.get_executor(),
             beast::bind_front_handler(std::forward<Handler>(handler), error_code()));
}

inline void beast_close_socket(client_stream& stream) {
  stream.cancel();
}

} // namespace twill::net

/// A wrapped handler keeps its associated executor and allocator.
template <template <class, class> class Associator, class Handler, class Default>
struct boost::asio::associator<Associator, twill::net::counting_handler<Handler>, Default>
    : Associator<Handler, Default> {
  static auto get(const twill::net::counting_handler<Handler>& h) noexcept {
    return Associator<Handler, Default>::get(h.next);
  }
  static auto get(const twill::net::counting_handler<Handler>& h, const Default& d) noexcept {
    return Associator<Handler, Default>::get(h.next, d);
  }
};
