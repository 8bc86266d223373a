#include "net/http/http_connection.hpp"

#include <algorithm>

#include "net/random_id.hpp"

namespace twill::net {
namespace {

constexpr std::chrono::seconds linger_time{1};

} // namespace

bool http_connection::accepts_input() const noexcept {
  return phase_ <= phase::receiving_body && guard_.gate_open();
}

// --- requests ------------------------------------------------------------------------------------

void http_connection::on_head_begun(time now) {
  phase_ = phase::receiving_head;
  since_ = now;
  framing_ = {make_id("req_")}; // used in a reply to a request whose head is incomplete
}

void http_connection::on_head(reply_framing framing, time now) {
  phase_ = phase::receiving_body;
  since_ = now;
  body_bytes_ = 0;
  framing_ = std::move(framing);
}

void http_connection::on_continue_wanted(time now) {
  out_.push(std::string_view("HTTP/1.1 100 Continue\r\n\r\n"));
  check_output(now);
}

void http_connection::refuse(const http_reply& reply, reply_framing framing, time now) {
  phase_ = phase::answering;
  framing_ = std::move(framing);
  framing_.keep_alive = false;
  on_reply(reply, now);
}

// --- the answer ----------------------------------------------------------------------------------

void http_connection::on_reply(const http_reply& reply, time now) {
  if (phase_ != phase::answering) return;
  std::string bytes;
  append_reply(bytes, reply, framing_);
  out_.push(std::move(bytes));
  finish_request(now);
}

void http_connection::on_call(call& answer, std::uint64_t first_key, time now) {
  // In HTTP/1.0 the end of a stream is shown by closing the connection.
  if (answer.stream && framing_.http_1_0) framing_.keep_alive = false;
  call_.emplace(std::move(answer.encoder), answer.stream, answer.size(), first_key);
  silent_since_ = now;
}

void http_connection::on_engine_events(std::vector<std::pair<std::uint64_t, actors::event>> events,
                                       time now) {
  if (phase_ != phase::answering || !call_.has_value()) return;
  std::string bytes;
  const auto state = call_->on_events(std::move(events), framing_, bytes);
  out_.push(std::move(bytes));
  if (state == call_reply::state::failed) actions_.cancel_requests = true;
  if (state != call_reply::state::running) return finish_request(now);
  check_output(now);
}

void http_connection::on_file(const http_reply& head, std::int64_t bytes, time now) {
  std::string text;
  append_reply_head(text, head, bytes, framing_);
  out_.push(std::move(text));
  file_bytes_left_ = framing_.head_only ? 0 : bytes;
  if (file_bytes_left_ == 0) return finish_request(now);
  check_output(now);
}

bool http_connection::wants_file_piece() const noexcept {
  return phase_ == phase::answering && file_bytes_left_ > 0 && !out_.has_waiting() &&
         !out_.writing();
}

void http_connection::on_file_piece(std::string piece, time now) {
  file_bytes_left_ -= static_cast<std::int64_t>(piece.size());
  out_.push(std::move(piece));
  if (file_bytes_left_ == 0) return finish_request(now);
  check_output(now);
}

void http_connection::finish_request(time now) {
  call_.reset();
  phase_ = phase::idle;
  since_ = now;
  if (framing_.keep_alive)
    check_output(now);
  else
    finish(now);
}

// --- the socket ----------------------------------------------------------------------------------

const std::string* http_connection::begin_write(time now) {
  if (phase_ == phase::closed || out_.writing() || !out_.has_waiting()) return nullptr;
  guard_.on_write_begun(now);
  return &out_.begin_write();
}

void http_connection::on_written(time now) {
  out_.end_write();
  guard_.on_write_ended();
  silent_since_ = now;
  if (phase_ == phase::closed) return;
  if (phase_ == phase::finishing && !out_.has_waiting()) return linger(now);
  check_output(now);
}

/// The client has closed its sending half. A running request is ended at once. Complete replies are
/// still written, because the client may still be reading.
void http_connection::on_peer_closed(time now) {
  if (phase_ == phase::answering || out_.empty()) return close();
  peer_closed_ = true;
  finish(now);
}

void http_connection::on_drain(time now) {
  framing_.keep_alive = false;
  if (phase_ == phase::idle) finish(now);
}

void http_connection::check_output(time now) {
  guard_.on_waiting_bytes(out_.bytes(), now, actions_);
  const bool streams = call_.has_value() && call_->is_stream();
  if (streams && guard_.overrun(out_.bytes(), now)) cut_off(now);
}

/// The client reads too slowly: ends its request, queues an error, and closes the socket.
void http_connection::cut_off(time now) {
  actions_.cancel_requests = true;
  framing_.keep_alive = false;
  if (call_.has_value()) {
    std::string last_words;
    call_->fail({actors::errc::slow_reader,
                 "the output was not read for longer than `server.slow_reader_timeout`; read it "
                 "faster, or ask for less",
                 ""},
                framing_, last_words);
    out_.push(std::move(last_words));
    call_.reset();
  }
  file_bytes_left_ = 0;
  phase_ = phase::finishing;
  guard_.close_by(now + linger_time);
}

void http_connection::finish(time now) {
  phase_ = phase::finishing;
  if (out_.empty()) return linger(now);
  check_output(now);
}

/// Half-closes the socket first, because closing a socket with unread input resets the connection,
/// and the client could lose the reply (RFC 9112, section 9.6).
void http_connection::linger(time now) {
  if (peer_closed_) return close();
  phase_ = phase::lingering;
  actions_.half_close = true;
  guard_.close_by(now + linger_time);
}

void http_connection::close() {
  if (phase_ == phase::closed) return;
  phase_ = phase::closed;
  call_.reset();
  actions_.close = true;
}

// --- the clock -----------------------------------------------------------------------------------

http_connection::time http_connection::next_deadline() const {
  if (phase_ == phase::closed) return time::max();
  const auto due = guard_.next_deadline();
  if (guard_.closing()) return due;
  if (receiving()) return std::min(due, receiving_deadline());
  if (phase_ == phase::idle && out_.empty()) return std::min(due, since_ + limits_.idle_timeout);
  return std::min(due, silence_deadline());
}

void http_connection::on_deadline(time now) {
  if (phase_ == phase::closed || now < next_deadline()) return;
  switch (guard_.check(now)) {
  case connection_guard::verdict::close:
    return close();
  case connection_guard::verdict::slow_reader:
    return cut_off(now);
  case connection_guard::verdict::fine:
    break;
  }
  if (now >= silence_deadline()) return break_silence(now);
  if (!receiving()) return close(); // no request began within the idle timeout
  const bool head = phase_ == phase::receiving_head;
  const api_error error{
      errc::request_timeout,
      head ? "the head of the request did not arrive within `server.header_timeout` (" +
                 std::to_string(limits_.input.first.count()) + " ms); send it at once"
           : "the body of the request came slower than `server.body_rate` (" +
                 std::to_string(limits_.input.bytes_per_s) + " bytes per second); send it faster",
      ""};
  refuse(error_reply(error), now);
}

/// Writes a filler only if no output waits, so that fillers do not accumulate for a slow client.
void http_connection::break_silence(time now) {
  std::string filler;
  call_->append_filler(framing_, filler);
  out_.push(std::move(filler));
  check_output(now);
}

http_connection::time http_connection::silence_deadline() const {
  const bool silent = call_.has_value() && call_->has_filler() && out_.empty();
  return silent && limits_.keep_alive.count() > 0 ? silent_since_ + limits_.keep_alive
                                                  : time::max();
}

/// A body may take as long as a head may take, plus the time of its bytes at the least rate.
http_connection::time http_connection::receiving_deadline() const {
  return limits_.input.due(since_, phase_ == phase::receiving_head ? 0 : body_bytes_);
}

} // namespace twill::net
