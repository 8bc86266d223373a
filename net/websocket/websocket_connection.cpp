#include "net/websocket/websocket_connection.hpp"

#include <algorithm>

#include "net/error_map.hpp"

namespace twill::net {
namespace {

/// How long the client may take to close its end.
constexpr std::chrono::seconds close_grace{1};
/// After give_up_message(), sending the error frame may take this long, and afterwards the client
/// may take this long to answer the close frame.
constexpr std::chrono::milliseconds give_up_grace{250};
constexpr std::size_t max_reason_bytes = 120; ///< a control frame holds at most 125 bytes

} // namespace

void websocket_connection::on_open() {
  if (phase_ == phase::opening) phase_ = phase::open;
}

void websocket_connection::on_message_part(std::int64_t so_far, time now) {
  if (!message_since_.has_value()) message_since_ = now;
  message_bytes_ = so_far;
}

void websocket_connection::on_message(std::string_view text) {
  message_since_.reset();
  if (phase_ == phase::open) dialect_.on_message(text);
}

void websocket_connection::on_engine_events(std::vector<std::pair<key, actors::event>> events) {
  if (phase_ != phase::open) return;
  for (auto& [from, ev] : events)
    dialect_.on_event(from, std::move(ev));
}

void websocket_connection::fail(const api_error& error) {
  actions_.cancel_requests = true;
  dialect_.on_error(error);
  want_close(map_error(error).close_code, error.message);
}

void websocket_connection::give_up_message(time now) {
  if (phase_ != phase::open) return close();
  fail(input_is_full());
  answer_grace_ = give_up_grace;
  guard_.close_by(now + give_up_grace);
}

void websocket_connection::want_close(std::uint16_t code, std::string_view reason) {
  if (phase_ != phase::open) return;
  phase_ = phase::closing;
  wanted_close_ = close_frame{code, std::string(reason.substr(0, max_reason_bytes))};
}

// --- writing -------------------------------------------------------------------------------------

const std::string* websocket_connection::begin_write(time now) {
  if (writing_ || (phase_ != phase::open && phase_ != phase::closing)) return nullptr;
  if (dialect_.next_frame(frame_)) {
    writing_ = true;
    guard_.on_write_begun(now);
    return &frame_;
  }
  if (draining_ && dialect_.idle()) want_close(1001, "the server is shutting down");
  return nullptr;
}

std::optional<websocket_connection::close_frame> websocket_connection::take_close(time now) {
  if (phase_ != phase::closing || writing_) return std::nullopt;
  phase_ = phase::close_sent;
  guard_.close_by(now + answer_grace_);
  return std::exchange(wanted_close_, std::nullopt);
}

void websocket_connection::on_written() {
  writing_ = false;
  guard_.on_write_ended();
  frame_.clear();
  if (frame_.capacity() > kept_buffer_bytes) frame_ = {};
}

void websocket_connection::check_output(bool requests_run, time now) {
  if (phase_ == phase::opening || phase_ >= phase::lingering) return;
  guard_.on_waiting_bytes(waiting_bytes(), now, actions_);
  if (requests_run && guard_.overrun(waiting_bytes(), now)) cut_off(now);
}

/// Handles a client that reads too slowly: cancels all its requests, queues an error frame, and
/// closes the socket.
void websocket_connection::cut_off(time now) {
  if (guard_.closing()) return;
  fail({actors::errc::slow_reader,
        "the output was not read for longer than `server.slow_reader_timeout`; read it faster, or "
        "ask for less",
        ""});
  guard_.close_by(now + close_grace);
}

// --- closing -------------------------------------------------------------------------------------

void websocket_connection::on_peer_closing(time now) {
  if (phase_ >= phase::close_sent) return;
  actions_.cancel_requests = true;
  phase_ = phase::peer_closing;
  guard_.close_by(now + close_grace);
}

void websocket_connection::on_read_failed(time now) {
  // In phase close_sent, the closing handshake that this side has begun is still in progress.
  if (phase_ != phase::close_sent) linger(now);
}

void websocket_connection::on_close_done(time now) {
  linger(now);
}

/// Closing a socket that has unread input would reset the connection, and the client might never
/// see the close frame. Therefore only the sending direction is closed first.
void websocket_connection::linger(time now) {
  if (phase_ >= phase::lingering) return;
  phase_ = phase::lingering;
  actions_.cancel_requests = true;
  actions_.half_close = true;
  guard_.close_by(now + close_grace);
}

void websocket_connection::close() {
  if (phase_ == phase::closed) return;
  phase_ = phase::closed;
  actions_.close = true;
}

// --- the clock -----------------------------------------------------------------------------------

websocket_connection::time websocket_connection::next_deadline() const {
  return phase_ == phase::closed ? time::max()
                                 : std::min(guard_.next_deadline(), message_deadline());
}

websocket_connection::time websocket_connection::message_deadline() const {
  if (phase_ != phase::open || !message_since_.has_value()) return time::max();
  return limits_.input.due(*message_since_, message_bytes_);
}

void websocket_connection::on_deadline(time now) {
  if (phase_ == phase::closed) return;
  switch (guard_.check(now)) {
  case connection_guard::verdict::close:
    return close();
  case connection_guard::verdict::slow_reader:
    return cut_off(now);
  case connection_guard::verdict::fine:
    break;
  }
  if (now < message_deadline()) return;
  fail({errc::request_timeout,
        "a message came slower than `server.body_rate` (" +
            std::to_string(limits_.input.bytes_per_s) + " bytes per second); send it faster",
        ""});
}

} // namespace twill::net
