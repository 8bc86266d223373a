#include "tools/twill-bench/engine/websocket_link.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/websocket/error.hpp>
#include <boost/beast/websocket/stream.hpp>

#include <utility>

#include "tools/twill-bench/engine/handshake_stream.hpp"

namespace twill::bench {
namespace {

void wake_if_over(waiter& who) {
  if (who.ex.finished() || who.ex.cancel_due()) who.wake.cancel();
}

} // namespace

namespace asio = boost::asio;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;

asio::awaitable<error_code> websocket_link::open(const route& where, clock::time_point deadline) {
  error_code error = co_await stream_.connect(where.address, deadline);
  if (!stream_.why_untrusted().empty()) why_not_open_ = untrusted_text(stream_.why_untrusted());
  if (error) co_return error;
  stream_.expires_at(deadline);
  websocket::stream<handshake_stream<server_stream>> socket(stream_);
  socket.set_option(websocket::stream_base::decorator([&where](websocket::request_type& request) {
    request.set(boost::beast::http::field::user_agent, "twill-bench/" TWILL_VERSION);
    for (const auto& [name, value] : where.headers)
      request.set(name, value);
  }));
  websocket::response_type reply;
  co_await socket.async_handshake(reply, where.server.authority(), where.path,
                                  asio::redirect_error(asio::use_awaitable, error));
  stream_.expires_never();
  if (error == websocket::error::upgrade_declined) {
    declined_status_ = static_cast<int>(reply.result_int());
    why_not_open_ = reply.body();
  }
  if (error) co_return stream_.cause(error);
  // Bytes that arrived in the same read as the reply to the handshake are handled in a posted
  // handler, because the caller of open() adds its request only after open() has returned.
  asio::post(stream_.get_executor(),
             [self = shared_from_this(), early = socket.next_layer().early()] {
               self->take(early, clock::now());
             });
  co_return error;
}

/// Reads from the socket itself: only the waiters have timers.
void websocket_link::read() {
  stream_.async_read_some(asio::buffer(block_),
                          [self = shared_from_this()](const error_code& error, std::size_t n) {
                            const clock::time_point now = clock::now();
                            if (error) return self->shut(error.message());
                            self->take({self->block_.data(), n}, now);
                          });
}

void websocket_link::take(std::string_view bytes, clock::time_point at) {
  if (dead_) return;
  if (!reader_.feed(
          bytes, [&](ws_opcode kind, std::string_view payload) { take_frame(kind, payload, at); }))
    return shut(reader_.why(), "protocol");
  if (!dead_) read();
}

void websocket_link::take_frame(ws_opcode kind, std::string_view payload, clock::time_point at) {
  if (dead_) return;
  if (kind == ws_opcode::ping) {
    send_frame(ws_opcode::pong, payload);
  } else if (kind == ws_opcode::close) {
    send_frame(ws_opcode::close, payload.substr(0, 2));
    shut("the server closed the WebSocket (code " + std::to_string(close_code(payload)) + ")");
  } else if (kind != ws_opcode::pong) {
    deliver(payload, at);
  }
}

void websocket_link::deliver(std::string_view payload, clock::time_point at) {
  const update change = dialect_.read_event(payload);
  if (!change.owner) return deliver_unnamed(change, payload, at);
  const auto found = waiting_.find(*change.owner);
  if (found == waiting_.end()) return; // a late message for a cancelled request
  found->second->ex.event(change, payload, at);
  wake_if_over(*found->second);
}

/// Delivers a frame that names no request: it belongs to the only request on the socket, or it is
/// an error of the whole connection, which all requests get.
void websocket_link::deliver_unnamed(const update& change, std::string_view payload,
                                     clock::time_point at) {
  if (change.malformed || (shared_ && !change.failed)) return;
  for (auto& [id, who] : waiting_) {
    who->ex.event(change, payload, at);
    wake_if_over(*who);
  }
}

void websocket_link::send(std::string_view message) {
  send_frame(ws_opcode::text, message);
}

void websocket_link::send_frame(ws_opcode kind, std::string_view payload) {
  if (dead_) return;
  append_masked_frame(unsent_, kind, payload, static_cast<std::uint32_t>(masks_()));
  if (in_write_.empty()) write();
}

void websocket_link::write() {
  in_write_.swap(unsent_);
  asio::async_write(
      stream_, asio::buffer(in_write_),
      [self = shared_from_this()](const error_code& error, std::size_t) { self->written(error); });
}

void websocket_link::written(const error_code& error) {
  in_write_.clear();
  if (error) return shut(error.message());
  if (dead_) return;
  if (!unsent_.empty()) return write();
  for (auto& [id, who] : waiting_)
    if (who->ex.cancel_due()) who->wake.cancel();
}

void websocket_link::shut(std::string why, const char* kind) {
  if (dead_) return;
  dead_ = true;
  why_ = std::move(why);
  why_kind_ = kind;
  stream_.close();
  for (auto& [id, who] : waiting_)
    who->wake.cancel();
}

} // namespace twill::bench
