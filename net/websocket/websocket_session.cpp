#include "net/websocket/websocket_session.hpp"

#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <optional>

#include "config/base/log.hpp"
#include "net/connection/deadline_timer.hpp"
#include "net/connection/write_queue.hpp"
#include "net/error_map.hpp"
#include "net/protocol/openai/responses_socket.hpp"
#include "net/protocol/stream/stream_dialect.hpp"
#include "net/websocket/patient_socket.hpp"

namespace twill::net {
namespace {

constexpr std::chrono::seconds close_grace{1};  ///< for the client to close its end
constexpr std::chrono::seconds answer_grace{5}; ///< for its answer to our close frame
constexpr std::size_t kept_buffer_bytes = 8 * 1024;

class websocket_session final : public socket_session,
                                public dialect_host,
                                public std::enable_shared_from_this<websocket_session> {
public:
  websocket_session(tcp::socket socket, server_context& context, websocket_handshake handshake)
      : context_(context), handshake_(std::move(handshake)), ws_(patient_socket(std::move(socket))),
        deadline_(ws_.get_executor()),
        gate_(static_cast<std::size_t>(context.options.server.max_write_queue_bytes)),
        buffer_(static_cast<std::size_t>(context.options.server.max_frame_bytes) + 1) {}

  ~websocket_session() override {
    context_.open_sockets -= 1;
    context_.sessions.remove(registry_id_);
  }

  void start() {
    context_.open_sockets += 1;
    registry_id_ = context_.sessions.add(weak_from_this());
    requests_.emplace(context_.engine, [weak = weak_from_this(), executor = ws_.get_executor()] {
      asio::post(executor, [weak] {
        if (auto self = weak.lock()) self->on_engine_events();
      });
    });
    dialect_scope scope{*this, context_.engine, context_.options, std::move(handshake_->tenant),
                        handshake_->request_id};
    if (handshake_->path == websocket_path::responses)
      dialect_ =
          std::make_unique<responses_socket>(std::move(scope), context_.responses, registry_id_);
    else
      dialect_ = std::make_unique<stream_dialect>(std::move(scope));
    accept();
  }

  void begin_drain() override {
    asio::post(ws_.get_executor(), [self = shared_from_this()] {
      self->draining_ = true;
      self->flush();
    });
  }

  void close_now() override {
    asio::post(ws_.get_executor(), [self = shared_from_this()] { self->end(); });
  }

  // dialect_host
  engine_requests::key start(actors::request what) override {
    return requests_->start(std::move(what));
  }
  void cancel(engine_requests::key which) override { requests_->cancel(which); }
  void pause(engine_requests::key which) override {
    requests_->pause(which, engine_requests::no_credit);
  }
  void resume(engine_requests::key which) override {
    requests_->resume(which, engine_requests::no_credit);
  }

private:
  using clock = deadline_timer::clock;

  void accept() {
    const auto& limits = context_.options.server;
    websocket::stream_base::timeout timeout{};
    timeout.handshake_timeout = limits.header_timeout;
    timeout.idle_timeout = limits.idle_timeout;
    timeout.keep_alive_pings = true;
    ws_.set_option(timeout);
    ws_.set_option(websocket::stream_base::decorator(
        [id = handshake_->request_id](websocket::response_type& response) {
          response.set(http::field::server, "twill");
          response.set("X-Request-Id", id);
        }));
    ws_.read_message_max(static_cast<std::size_t>(limits.max_frame_bytes));
    ws_.control_callback([this](websocket::frame_type kind, beast::string_view) {
      if (kind == websocket::frame_type::close) on_peer_closing();
    });
    ws_.auto_fragment(false);
    ws_.text(true);
    ws_.async_accept(handshake_->message, [self = shared_from_this()](error_code error) {
      self->handshake_.reset();
      if (error || self->ended_) return self->end();
      self->open_ = true;
      self->read();
      self->flush();
    });
  }

  void read() {
    if (reading_ || ended_ || lingering_ || close_wanted_.has_value() || !gate_.open()) return;
    reading_ = true;
    ws_.async_read(buffer_, [self = shared_from_this()](error_code error, std::size_t) {
      self->reading_ = false;
      self->on_read(error);
    });
  }

  void on_read(error_code error) {
    if (ended_) return;
    if (error) {
      if (log::enabled(log::level::debug)) log::debug("websocket: " + error.message());
      if (!close_started_) linger(); // else our own closing handshake goes on
      return;
    }
    if (ws_.got_binary()) {
      fail({errc::binary_frame, "frame must be text, got binary", ""});
    } else if (!close_wanted_.has_value()) {
      dialect_->on_message({static_cast<const char*>(buffer_.data().data()), buffer_.size()});
    }
    buffer_.consume(buffer_.size());
    if (buffer_.capacity() > kept_buffer_bytes) buffer_.shrink_to_fit();
    flush();
    read();
  }

  void on_engine_events() {
    auto events = requests_->take_events();
    if (ended_ || close_sent_ || close_wanted_.has_value()) return;
    for (auto& [key, ev] : events)
      dialect_->on_event(key, std::move(ev));
    flush();
  }

  /// Says why, then closes with the error's code.
  void fail(const api_error& error) {
    requests_->cancel_all();
    dialect_->on_error(error);
    want_close(map_error(error).close_code, error.message);
  }

  void want_close(std::uint16_t code, std::string_view why) {
    if (close_wanted_.has_value()) return;
    constexpr std::size_t max_reason_bytes = 120; // a control frame holds 125
    close_wanted_.emplace(static_cast<websocket::close_code>(code),
                          beast::string_view(why.data(), std::min(why.size(), max_reason_bytes)));
  }

  void flush() {
    if (!open_ || ended_) return;
    if (!writing_ && !close_sent_) write_next();
    check_gate();
    arm();
  }

  void write_next() {
    if (dialect_->next_frame(frame_)) {
      writing_ = true;
      write_since_ = clock::now();
      ws_.async_write(
          asio::buffer(frame_),
          [self = shared_from_this()](error_code error, std::size_t) { self->on_written(error); });
      return;
    }
    if (draining_ && dialect_->idle()) want_close(1001, "the server is shutting down");
    if (close_wanted_.has_value()) send_close();
  }

  void on_written(error_code error) {
    writing_ = false;
    frame_.clear();
    if (frame_.capacity() > kept_buffer_bytes) frame_ = {};
    if (ended_ || lingering_) return;
    if (error) return end();
    flush();
    read(); // the gate may have opened
  }

  void send_close() {
    close_sent_ = close_started_ = true;
    give_up_at_ = clock::now() + answer_grace;
    ws_.async_close(*close_wanted_, [self = shared_from_this()](error_code) { self->linger(); });
  }

  void check_gate() {
    switch (gate_.update(waiting_bytes())) {
    case flow_gate::change::shut:
      shut_since_ = clock::now();
      requests_->pause_all();
      break;
    case flow_gate::change::opened:
      requests_->resume_all();
      read();
      break;
    case flow_gate::change::none:
      break;
    }
    const bool heedless =
        gate_.over_limit(waiting_bytes()) && clock::now() - shut_since_ > pause_grace;
    if (heedless && requests_->size() > 0) cut_off();
  }

  std::size_t waiting_bytes() const { return dialect_->waiting_bytes() + frame_.size(); }

  void cut_off() {
    fail({actors::errc::slow_reader, "output was not read for too long", ""});
    give_up_at_ = clock::now() + close_grace;
    arm();
  }

  deadline_timer::time next_deadline() const {
    const auto limit = context_.options.server.slow_reader_timeout;
    if (give_up_at_.has_value()) return *give_up_at_;
    auto due = deadline_timer::time::max();
    if (writing_) due = write_since_ + limit;
    if (!gate_.open()) due = std::min(due, shut_since_ + limit);
    return due;
  }

  void arm() {
    if (ended_) return;
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
    if (ended_) return;
    if (clock::now() < next_deadline()) return arm();
    if (give_up_at_.has_value()) return end();
    cut_off();
  }

  /// The client asked to close: Beast answers, then waits for it to close its end, in bounded time.
  void on_peer_closing() {
    requests_->cancel_all();
    close_sent_ = true;
    give_up_at_ = clock::now() + close_grace;
    arm();
  }

  /// Reads on for a moment: closing with unread input would reset the connection, and the client
  /// might never see our close frame.
  void linger() {
    if (ended_ || lingering_) return;
    lingering_ = true;
    requests_->cancel_all();
    give_up_at_ = clock::now() + close_grace;
    arm();
    error_code ignored;
    ws_.next_layer().shutdown(tcp::socket::shutdown_send, ignored);
    discard();
  }

  void discard() {
    buffer_.clear();
    ws_.next_layer().async_read_some(buffer_.prepare(kept_buffer_bytes),
                                     [self = shared_from_this()](error_code error, std::size_t) {
                                       if (error || self->ended_) return self->end();
                                       self->discard();
                                     });
  }

  void end() {
    if (ended_) return;
    ended_ = true;
    requests_->close();
    deadline_.cancel();
    error_code ignored;
    ws_.next_layer().close(ignored);
  }

  server_context& context_;
  std::optional<websocket_handshake> handshake_;
  websocket::stream<patient_socket, false> ws_;
  deadline_timer deadline_;
  flow_gate gate_;
  beast::flat_buffer buffer_;
  std::string frame_;
  std::optional<engine_requests> requests_;
  std::unique_ptr<dialect> dialect_;
  std::optional<websocket::close_reason> close_wanted_;
  std::optional<deadline_timer::time> give_up_at_;
  deadline_timer::time write_since_{};
  deadline_timer::time shut_since_{};
  std::uint64_t registry_id_ = 0;
  bool open_ = false;
  bool reading_ = false;
  bool writing_ = false;
  bool close_sent_ = false;    ///< by us or, as an answer, by Beast: no frames after it
  bool close_started_ = false; ///< our own closing handshake
  bool draining_ = false;
  bool lingering_ = false;
  bool ended_ = false;
};

} // namespace

void start_websocket_session(tcp::socket socket, server_context& context,
                             websocket_handshake handshake) {
  std::make_shared<websocket_session>(std::move(socket), context, std::move(handshake))->start();
}

} // namespace twill::net
