#include "net/http_session.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/websocket/rfc6455.hpp>

#include "config/base/log.hpp"
#include "net/deadline.hpp"
#include "net/http_head.hpp"
#include "net/request_table.hpp"
#include "net/router.hpp"
#include "net/websocket_session.hpp"
#include "net/write_queue.hpp"

namespace twill::net {
namespace {

constexpr std::size_t read_bytes = 8 * 1024;
constexpr std::size_t max_pipelined_bytes = 64 * 1024;
constexpr std::uint32_t max_head_bytes = 32 * 1024;
constexpr std::chrono::seconds linger_time{1};

class http_session final : public session, public std::enable_shared_from_this<http_session> {
public:
  http_session(tcp::socket socket, server_context& context)
      : context_(context), socket_(std::move(socket)), deadline_(socket_.get_executor()),
        gate_(static_cast<std::size_t>(context.options.server.max_write_queue_bytes)) {}

  ~http_session() override {
    context_.body_bytes -= counted_body_bytes_;
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
      if (!self->busy_ && !self->receiving_) self->close_when_written();
    });
  }

  void close_now() override {
    asio::post(socket_.get_executor(), [self = shared_from_this()] { self->close(); });
  }

private:
  using clock = deadline::clock;
  using parser = http::request_parser<http::string_body>;

  // --- reading ---------------------------------------------------------------------------------

  void read() {
    if (reading_ || closed_ || in_.size() >= max_pipelined_bytes) return;
    reading_ = true;
    socket_.async_read_some(in_.prepare(read_bytes),
                            [self = shared_from_this()](error_code error, std::size_t n) {
                              self->reading_ = false;
                              self->on_read(error, n);
                            });
  }

  void on_read(error_code error, std::size_t n) {
    if (closed_) return;
    if (error) return on_peer_gone();
    if (closing_) { // nothing more is wanted; read on only so that our last bytes arrive
      in_.clear();
      return read();
    }
    in_.commit(n);
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
    while (!busy_ && !closing_ && !closed_ && in_.size() > 0 && gate_.open())
      if (!parse_some()) break;
    if (upgraded_) return;
    arm();
    read();
  }

  /// False when more bytes are needed.
  bool parse_some() {
    if (!receiving_) begin_request();
    error_code error;
    const auto used = parser_->put(in_.data(), error);
    in_.consume(used);
    if (error == http::error::need_more) error = {};
    if (error) {
      refuse(parse_error(error));
      return false;
    }
    if (!count_body()) return false;
    if (parser_->is_done()) {
      on_request();
      return true;
    }
    if (parser_->is_header_done() && !head_seen_) on_head();
    return used > 0;
  }

  void begin_request() {
    receiving_ = true;
    head_seen_ = false;
    received_since_ = clock::now();
    parser_.emplace();
    parser_->eager(true);
    parser_->header_limit(max_head_bytes);
    parser_->body_limit(static_cast<std::uint64_t>(context_.options.server.max_body_bytes));
  }

  void on_head() {
    head_seen_ = true;
    const auto expect = parser_->get()[http::field::expect];
    if (beast::iequals(expect, "100-continue") && in_.size() == 0) {
      out_.push(std::string_view("HTTP/1.1 100 Continue\r\n\r\n"));
      flush();
    }
  }

  /// Bodies of all sockets together stay within a budget, whatever each declares.
  bool count_body() {
    const auto now = static_cast<std::int64_t>(parser_->get().body().size());
    const auto total = context_.body_bytes += now - counted_body_bytes_;
    counted_body_bytes_ = now;
    const auto budget = 16 * context_.options.server.max_body_bytes;
    if (total <= budget) return true;
    refuse({errc::busy,
            "unread request bodies of all clients must stay below " + std::to_string(budget) +
                " bytes, got " + std::to_string(total),
            ""});
    return false;
  }

  api_error parse_error(error_code error) const {
    if (error == http::error::body_limit)
      return {errc::body_too_large,
              "body must be at most " + std::to_string(context_.options.server.max_body_bytes) +
                  " bytes, got more",
              ""};
    if (error == http::error::header_limit || error == http::error::buffer_overflow)
      return {errc::head_too_large,
              "request line and headers must be at most " + std::to_string(max_head_bytes) +
                  " bytes, got more",
              ""};
    return {errc::malformed_http, "request must be HTTP/1.1, got " + error.message(), ""};
  }

  /// Answers a request that cannot be read to its end, then closes.
  void refuse(const api_error& error) {
    keep_alive_ = false;
    if (request_id_.empty()) request_id_ = make_id("req_");
    reply(error_reply(error));
  }

  // --- one request -----------------------------------------------------------------------------

  void on_request() {
    auto message = parser_->release();
    context_.body_bytes -= std::exchange(counted_body_bytes_, 0);
    receiving_ = false;
    parser_.reset();
    http_1_0_ = message.version() < 11;
    head_only_ = message.method() == http::verb::head;
    keep_alive_ = message.keep_alive() && !context_.draining;
    const auto id = message["X-Request-Id"];
    const bool usable = !id.empty() && id.size() <= 128 &&
                        std::all_of(id.begin(), id.end(), [](char c) { return c > 32 && c < 127; });
    request_id_ = usable ? std::string(id) : make_id("req_");

    http_request request;
    request.method = std::string(message.method_string());
    const std::string_view target(message.target().data(), message.target().size());
    request.path = percent_decode(target.substr(0, target.find('?')));
    request.authorization = std::string(message[http::field::authorization]);
    request.request_id = request_id_;
    if (websocket::is_upgrade(message)) return upgrade(request, std::move(message));
    request.body = std::move(message.body());
    busy_ = true;
    auto what = log::enabled(log::level::debug)
                    ? request_id_ + " " + request.method + " " + request.path
                    : std::string();
    if (!what.empty()) log::debug(what);
    answer(route(std::move(request), context_));
  }

  void upgrade(const http_request& request, http::request<http::string_body> message) {
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
    else if (in_.size() > 0)
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

  head_options head() const { return {request_id_, keep_alive_, http_1_0_, head_only_}; }

  void end_request() {
    call_.reset();
    busy_ = false;
    receiving_ = false;
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
    request_table::key first_key = 0;
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
    if (call_.has_value() && call_->stream && gate_.over_limit(out_.bytes())) cut_off();
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
    in_.clear();
    read();
  }

  void close() {
    if (closed_) return;
    closed_ = true;
    requests_->close();
    call_.reset();
    deadline_.cancel();
    error_code ignored;
    socket_.close(ignored);
  }

  // --- deadlines -------------------------------------------------------------------------------

  deadline::time next_deadline() const {
    const auto& limits = context_.options.server;
    if (linger_until_.has_value()) return *linger_until_;
    auto due = deadline::time::max();
    if (out_.writing()) due = write_since_ + limits.slow_reader_timeout;
    if (!gate_.open()) due = std::min(due, shut_since_ + limits.slow_reader_timeout);
    if (receiving_)
      due = std::min(due, received_since_ + limits.header_timeout);
    else if (!busy_ && out_.empty())
      due = std::min(due, waiting_since_ + limits.idle_timeout);
    return due;
  }

  void arm() {
    if (closed_) return;
    const auto due = next_deadline();
    if (due == deadline::time::max()) return;
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
    if (!receiving_) return close(); // idle
    refuse({errc::request_timeout,
            "request must arrive whole within " +
                std::to_string(context_.options.server.header_timeout.count()) + " ms",
            ""});
  }

  server_context& context_;
  tcp::socket socket_;
  deadline deadline_;
  flow_gate gate_;
  write_queue out_;
  beast::flat_buffer in_;
  std::optional<parser> parser_;
  std::optional<request_table> requests_;
  std::optional<running_call> call_;
  std::string request_id_;
  std::uint64_t registry_id_ = 0;
  std::int64_t counted_body_bytes_ = 0;
  deadline::time waiting_since_{};
  deadline::time received_since_{};
  deadline::time write_since_{};
  deadline::time shut_since_{};
  std::optional<deadline::time> linger_until_;
  bool reading_ = false;
  bool receiving_ = false; ///< part of a request has arrived
  bool head_seen_ = false;
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
