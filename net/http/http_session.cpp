#include "net/http/http_session.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/websocket/rfc6455.hpp>

#include "config/base/log.hpp"
#include "net/connection/deadline_timer.hpp"
#include "net/connection/engine_requests.hpp"
#include "net/connection/write_queue.hpp"
#include "net/http/reply_head.hpp"
#include "net/http/request_reader.hpp"
#include "net/http/router.hpp"
#include "net/websocket/websocket_session.hpp"

namespace twill::net {
namespace {

constexpr std::size_t read_bytes = 8 * 1024;
constexpr std::chrono::seconds linger_time{1};
constexpr std::int64_t file_piece_bytes = 64 * 1024;

class http_session final : public socket_session,
                           public std::enable_shared_from_this<http_session> {
public:
  http_session(tcp::socket socket, server_context& context)
      : context_(context), socket_(std::move(socket)), deadline_(socket_.get_executor()),
        gate_(static_cast<std::size_t>(context.options.server.max_write_queue_bytes)),
        in_(context) {}

  ~http_session() override {
    context_.open_sockets -= 1;
    context_.sessions.remove(registry_id_);
  }

  void start() {
    context_.open_sockets += 1;
    registry_id_ = context_.sessions.add(weak_from_this());
    requests_.emplace(context_.engine,
                      [weak = weak_from_this(), executor = socket_.get_executor()] {
                        asio::post(executor, [weak] {
                          if (auto self = weak.lock()) self->on_engine_events();
                        });
                      });
    waiting_since_ = clock::now();
    arm();
    read();
  }

  void begin_drain() override {
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
      self->keep_alive_ = false;
      if (!self->busy_ && !self->in_.receiving()) self->close_when_written();
    });
  }

  void close_now() override {
    asio::post(socket_.get_executor(), [self = shared_from_this()] { self->close(); });
  }

private:
  using clock = deadline_timer::clock;

  // --- reading ---------------------------------------------------------------------------------

  void read() {
    if (reading_ || closed_ || in_.full()) return;
    reading_ = true;
    socket_.async_read_some(in_.input().prepare(read_bytes),
                            [self = shared_from_this()](error_code error, std::size_t n) {
                              self->reading_ = false;
                              self->on_read(error, n);
                            });
  }

  void on_read(error_code error, std::size_t n) {
    if (closed_) return;
    if (error) return on_peer_gone();
    if (closing_) { // nothing more is wanted; read on only so that our last bytes arrive
      in_.input().clear();
      return read();
    }
    in_.input().commit(n);
    pump();
  }

  /// The peer closed or reset: whatever runs for it ends now. Replies already made still go out.
  void on_peer_gone() {
    if (busy_ || out_.empty()) return close();
    closing_ = true;
    peer_gone_ = true;
    flush();
  }

  /// Handles what has arrived until a reply must be waited for.
  void pump() {
    while (!busy_ && !closing_ && !closed_ && in_.has_input() && gate_.open())
      if (!advance()) break;
    if (upgraded_) return;
    arm();
    read();
  }

  /// False when more bytes are needed.
  bool advance() {
    if (!in_.receiving()) received_since_ = clock::now();
    switch (in_.advance()) {
    case request_reader::progress::done:
      on_request(in_.take());
      return true;
    case request_reader::progress::failed:
      refuse(in_.error());
      return false;
    case request_reader::progress::want_continue:
      out_.push(std::string_view("HTTP/1.1 100 Continue\r\n\r\n"));
      flush();
      return false;
    case request_reader::progress::need_more:
      break;
    }
    return false;
  }

  /// Answers a request that cannot be read to its end, then closes.
  void refuse(const api_error& error) {
    in_.abandon();
    keep_alive_ = false;
    if (request_id_.empty()) request_id_ = make_id("req_");
    reply(error_reply(error));
  }

  // --- one request -----------------------------------------------------------------------------

  void on_request(request_reader::message message) {
    http_1_0_ = message.version() < 11;
    head_only_ = message.method() == http::verb::head;
    keep_alive_ = message.keep_alive() && !context_.draining;
    auto request = describe_request(message);
    request_id_ = request.request_id;
    if (log::enabled(log::level::debug))
      log::debug(request_id_ + " " + request.method + " " + request.path);
    if (websocket::is_upgrade(message)) return upgrade(request, std::move(message));
    request.body = std::move(message.body());
    busy_ = true;
    answer(route(std::move(request), context_));
  }

  void upgrade(const http_request& request, request_reader::message message) {
    const auto path = find_websocket_path(request.path);
    auto tenant = context_.keys.tenant_of(request.authorization);
    api_error error{errc::upgrade_refused, "", ""};
    if (path == websocket_path::none)
      error.message =
          "path of a WebSocket handshake must be /v1/responses or /v1/stream, got " + request.path;
    else if (!tenant.has_value())
      error = {errc::unauthorized, "`Authorization` must be \"Bearer KEY\" with a known key", ""};
    else if (context_.draining)
      error = {actors::errc::shutting_down, "the server is draining", ""};
    else if (in_.has_input())
      error.message = "a WebSocket handshake must end the client's bytes until it is answered";
    else if (!out_.empty())
      error.message = "a WebSocket handshake must not be pipelined behind other requests";
    else {
      upgraded_ = closed_ = true;
      deadline_.cancel();
      requests_->close();
      context_.sessions.remove(registry_id_);
      return start_websocket_session(std::move(socket_), context_,
                                     {path, std::move(*tenant), request_id_, std::move(message)});
    }
    keep_alive_ = false;
    reply(error_reply(error));
  }

  void answer(http_answer made) {
    if (auto* ready = std::get_if<http_reply>(&made)) return reply(std::move(*ready));
    if (auto* slow = std::get_if<slow_reply>(&made)) {
      context_.run_on_worker([self = shared_from_this(), slow = std::move(*slow)] {
        auto done = std::make_shared<http_reply>(slow());
        asio::post(self->socket_.get_executor(), [self, done] {
          if (self->closed_ || !self->busy_) return;
          self->reply(std::move(*done));
          self->pump();
        });
      });
      return;
    }
    if (auto* file = std::get_if<file_reply>(&made)) return send_file(std::move(*file));
    auto& made_call = std::get<call>(made);
    call_.emplace(running_call{std::move(made_call.encoder), made_call.stream});
    for (auto& request : made_call.requests) {
      const auto key = requests_->start(std::move(request));
      if (call_->remaining++ == 0) call_->first_key = key;
    }
  }

  void reply(http_reply made) {
    std::string bytes;
    append_reply(bytes, made, head());
    out_.push(std::move(bytes));
    end_request();
  }

  /// The head now, then a piece of the body whenever the one before has been written.
  void send_file(file_reply file) {
    std::string bytes;
    append_reply_head(bytes, {200, "", file.content_type, {}}, file.bytes, head());
    out_.push(std::move(bytes));
    if (head_only_) file.bytes = 0;
    file_ = std::move(file);
    send_piece();
  }

  void send_piece() {
    std::string piece(static_cast<std::size_t>(std::min(file_->bytes, file_piece_bytes)), '\0');
    if (!file_->source->read(piece.data(), static_cast<std::streamsize>(piece.size()))) {
      log::warn(request_id_ + " the file being sent became unreadable");
      return close(); // the length was promised: a cut connection is the only way to say so
    }
    file_->bytes -= static_cast<std::int64_t>(piece.size());
    out_.push(std::move(piece));
    if (file_->bytes > 0) return flush();
    file_.reset();
    end_request();
  }

  head_options head() const { return {request_id_, keep_alive_, http_1_0_, head_only_}; }

  void end_request() {
    call_.reset();
    busy_ = false;
    waiting_since_ = clock::now();
    if (keep_alive_)
      flush();
    else
      close_when_written();
  }

  // --- generating ------------------------------------------------------------------------------

  struct running_call {
    std::unique_ptr<reply_encoder> encoder;
    bool stream = false;
    std::size_t remaining = 0; ///< requests that have not ended
    engine_requests::key first_key = 0;
    bool head_sent = false;
  };

  void on_engine_events() {
    auto events = requests_->take_events();
    if (closed_ || !call_.has_value()) return;
    std::string produced;
    for (auto& [key, ev] : events) {
      if (ev.error.has_value()) return fail_call(from_engine(std::move(*ev.error)), produced);
      if (ev.last) --call_->remaining;
      call_->encoder->on_event(key - call_->first_key, std::move(ev), produced);
    }
    const bool over = call_->remaining == 0;
    if (over) call_->encoder->on_end(produced);
    if (call_->stream) {
      stream(produced, over);
      if (over) end_request();
    } else if (over) {
      reply({200, std::move(produced)});
    }
    if (over)
      pump();
    else
      flush();
  }

  /// Before the first byte of a stream an error still has its status code; later it is an event.
  void fail_call(const api_error& error, std::string& produced) {
    requests_->cancel_all();
    if (call_->stream && (call_->head_sent || !produced.empty())) {
      call_->encoder->on_error(error, produced);
      stream(produced, true);
      end_request();
    } else {
      reply(error_reply(error));
    }
    pump();
  }

  void stream(std::string_view produced, bool over) {
    std::string bytes;
    if (http_1_0_) keep_alive_ = false;
    if (!call_->head_sent) append_stream_head(bytes, head());
    call_->head_sent = true;
    if (http_1_0_) {
      bytes += produced;
    } else {
      append_chunk(bytes, produced);
      if (over) bytes += last_chunk;
    }
    out_.push(std::move(bytes));
  }

  // --- writing ---------------------------------------------------------------------------------

  void flush() {
    if (closed_) return;
    if (!out_.writing() && out_.has_waiting()) {
      write_since_ = clock::now();
      asio::async_write(
          socket_, asio::buffer(out_.begin_write()),
          [self = shared_from_this()](error_code error, std::size_t) { self->on_written(error); });
    }
    check_gate();
    arm();
  }

  void on_written(error_code error) {
    out_.end_write();
    if (closed_) return;
    if (error) return close();
    if (out_.has_waiting()) return flush();
    if (closing_) return linger();
    if (file_.has_value()) return send_piece();
    check_gate();
    pump(); // requests that waited for the gate
  }

  void check_gate() {
    switch (gate_.update(out_.bytes())) {
    case flow_gate::change::shut:
      shut_since_ = clock::now();
      requests_->pause_all();
      break;
    case flow_gate::change::opened:
      requests_->resume_all();
      break;
    case flow_gate::change::none:
      break;
    }
    const bool heedless =
        gate_.over_limit(out_.bytes()) && clock::now() - shut_since_ > pause_grace;
    if (heedless && call_.has_value() && call_->stream) cut_off();
  }

  /// The reader is too slow: its request ends, an error event is left for it, and the socket
  /// closes.
  void cut_off() {
    requests_->cancel_all();
    if (call_.has_value() && call_->stream) {
      std::string produced;
      call_->encoder->on_error({actors::errc::slow_reader, "output was not read for too long", ""},
                               produced);
      keep_alive_ = false;
      stream(produced, true);
      call_.reset();
    }
    file_.reset();
    busy_ = false;
    closing_ = true;
    linger_until_ = clock::now() + linger_time;
    arm();
  }

  // --- closing ---------------------------------------------------------------------------------

  void close_when_written() {
    closing_ = true;
    if (out_.empty())
      linger();
    else
      flush();
  }

  /// Half-closes and reads on for a moment: closing with unread input would reset the connection,
  /// and the client might lose the reply (RFC 9112, section 9.6).
  void linger() {
    if (peer_gone_) return close();
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    linger_until_ = clock::now() + linger_time;
    arm();
    in_.input().clear();
    read();
  }

  void close() {
    if (closed_) return;
    closed_ = true;
    requests_->close();
    call_.reset();
    file_.reset();
    deadline_.cancel();
    error_code ignored;
    socket_.close(ignored);
  }

  // --- deadlines -------------------------------------------------------------------------------

  deadline_timer::time next_deadline() const {
    const auto& limits = context_.options.server;
    if (linger_until_.has_value()) return *linger_until_;
    auto due = deadline_timer::time::max();
    if (out_.writing()) due = write_since_ + limits.slow_reader_timeout;
    if (!gate_.open()) due = std::min(due, shut_since_ + limits.slow_reader_timeout);
    if (in_.receiving())
      due = std::min(due, received_since_ + limits.header_timeout);
    else if (!busy_ && out_.empty())
      due = std::min(due, waiting_since_ + limits.idle_timeout);
    return due;
  }

  void arm() {
    if (closed_) return;
    const auto due = next_deadline();
    if (due == deadline_timer::time::max()) return;
    deadline_.at(due, [weak = weak_from_this()](auto fired) {
      auto self = weak.lock();
      if (!self) return;
      fired();
      self->on_deadline();
    });
  }

  void on_deadline() {
    if (closed_) return;
    if (clock::now() < next_deadline()) return arm();
    if (linger_until_.has_value()) return close();
    if (out_.writing() || !gate_.open()) return cut_off();
    if (!in_.receiving()) return close(); // idle
    refuse({errc::request_timeout,
            "request must arrive whole within " +
                std::to_string(context_.options.server.header_timeout.count()) + " ms",
            ""});
  }

  server_context& context_;
  tcp::socket socket_;
  deadline_timer deadline_;
  flow_gate gate_;
  write_queue out_;
  request_reader in_;
  std::optional<engine_requests> requests_;
  std::optional<running_call> call_;
  std::optional<file_reply> file_; ///< `bytes` of it are still to be read
  std::string request_id_;
  std::uint64_t registry_id_ = 0;
  deadline_timer::time waiting_since_{};
  deadline_timer::time received_since_{};
  deadline_timer::time write_since_{};
  deadline_timer::time shut_since_{};
  std::optional<deadline_timer::time> linger_until_;
  bool reading_ = false;
  bool busy_ = false;    ///< a reply is being made
  bool closing_ = false; ///< no further requests; close once all is written
  bool closed_ = false;
  bool peer_gone_ = false;
  bool upgraded_ = false;
  bool keep_alive_ = true;
  bool http_1_0_ = false;
  bool head_only_ = false;
};

} // namespace

void start_http_session(tcp::socket socket, server_context& context) {
  std::make_shared<http_session>(std::move(socket), context)->start();
}

} // namespace twill::net
