#include "net/websocket/websocket_session.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <optional>

#include "config/base/log.hpp"
#include "net/connection/deadline_timer.hpp"
#include "net/error_map.hpp"
#include "net/stored/stored_service.hpp"
#include "net/tracing/tracer.hpp"
#include "net/websocket/websocket_connection.hpp"

namespace twill::net {
namespace {

constexpr auto kept_buffer_bytes = websocket_connection::kept_buffer_bytes;

class websocket_session final : public socket_session,
                                public dialect_host,
                                public std::enable_shared_from_this<websocket_session> {
public:
  websocket_session(client_stream stream, open_sockets::slot slot, server_context& context,
                    websocket_handshake handshake)
      : context_(context), slot_(std::move(slot)), listener_(handshake.listener),
        handshake_(std::move(handshake)), received_(context.input), ws_(std::move(stream)),
        deadline_(ws_.get_executor()),
        buffer_(static_cast<std::size_t>(context.options.server.max_frame_bytes) + 1) {}

  ~websocket_session() override { context_.sessions.remove(registry_id_); }

  void start() {
    registry_id_ = context_.sessions.add(weak_from_this(), socket_use::websocket);
    output_.emplace(context_.output, [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->close_now();
    });
    ws_.next_layer().count_into(output_->taken());
    received_.on_give_up([weak = weak_from_this(), executor = ws_.get_executor()] {
      asio::post(executor, [weak] {
        if (auto self = weak.lock()) self->give_up_message();
      });
    });
    requests_.emplace(context_.engine, [weak = weak_from_this(), executor = ws_.get_executor()] {
      asio::post(executor, [weak] {
        if (auto self = weak.lock()) self->on_engine_events();
      });
    });
    const auto& limits = context_.options.server;
    traceparent_ = handshake_->traceparent;
    dialect_ =
        handshake_->open({*this, context_.engine, context_.options, context_.current,
                          context_.responses, context_.find_previous, std::move(handshake_->holder),
                          handshake_->request_id, registry_id_, context_.watched});
    connection_.emplace(
        websocket_connection::limits{
            {static_cast<std::size_t>(limits.max_write_queue_bytes), limits.slow_reader_timeout},
            {limits.header_timeout, limits.body_rate_bytes}},
        *dialect_);
    set_options(limits);
    accept();
  }

  void begin_drain() override {
    asio::post(ws_.get_executor(), [self = shared_from_this()] {
      self->connection_->on_drain();
      self->act();
    });
  }

  void close_now() override {
    asio::post(ws_.get_executor(), [self = shared_from_this()] {
      self->connection_->close();
      self->act();
    });
  }

  // --- dialect_host ------------------------------------------------------------------------------
  engine_requests::key start(actors::request request) override {
    if (context_.traces != nullptr) context_.traces->watch(request, traceparent_);
    return requests_->start(std::move(request));
  }
  result<engine_requests::key> start_stored(stored_head head, actors::request request) override {
    if (context_.traces != nullptr) context_.traces->watch(request, traceparent_);
    auto source = context_.stored->begin(std::move(head), std::move(request));
    if (!source.ok()) return fail(source.code());
    return requests_->follow(std::move(source).value());
  }
  void find_stored(const std::string& id, const std::string& tenant, found_stored then) override {
    fair_pool::task task;
    task.client = requests_->client();
    task.bytes = std::min(context_.stored->room_of_response(id, tenant),
                          context_.options.server.max_body_bytes);
    task.is_unwanted = [weak = weak_from_this()] { return weak.expired(); };
    task.run = [weak = weak_from_this(), id, tenant, then, &context = context_] {
      auto found =
          std::make_shared<std::optional<followed_response>>(context.stored->follow(id, tenant));
      if (const auto self = weak.lock()) self->tell(then, std::move(found));
    };
    if (!context_.run_on_worker(std::move(task)))
      then(fail({actors::errc::queue_full, "too much waits to be read; retry later", ""}));
  }
  engine_requests::key follow(std::shared_ptr<event_source> source) override {
    return requests_->follow(std::move(source));
  }
  void cancel(engine_requests::key which) override { requests_->cancel(which); }
  bool end(engine_requests::key which) override { return requests_->end(which); }
  void pause(engine_requests::key which) override {
    requests_->pause(which, engine_requests::no_credit);
  }
  void resume(engine_requests::key which) override {
    requests_->resume(which, engine_requests::no_credit);
  }
  bool output_full() const override { return context_.output.full(); }
  std::function<void()> waker() override {
    return [weak = weak_from_this(), executor = ws_.get_executor()] {
      asio::post(executor, [weak] {
        if (auto self = weak.lock(); self && !self->closed()) self->act();
      });
    };
  }

private:
  using clock = deadline_timer::clock;
  using phase = websocket_connection::phase;

  void tell(found_stored then, std::shared_ptr<std::optional<followed_response>> found) {
    asio::post(ws_.get_executor(), [self = shared_from_this(), then = std::move(then), found] {
      if (self->connection_->now_in() != phase::open) return;
      then(std::move(*found));
      self->act();
    });
  }

  bool closed() const { return connection_->now_in() == phase::closed; }

  // --- actions of the connection -----------------------------------------------------------------

  void act() {
    const auto now = clock::now();
    connection_->press(context_.output.full());
    connection_->check_output(requests_->size() > 0, now);
    if (!perform(connection_->take_actions())) return;
    output_->set(static_cast<std::int64_t>(connection_->waiting_bytes()));
    set_busy(listener_ == listener_kind::clients &&
             (requests_->size() > 0 || connection_->waiting_bytes() > 0 || buffer_.size() > 0));
    if (const auto* frame = connection_->begin_write(now))
      write(*frame);
    else if (const auto close = connection_->take_close(now))
      send_close(*close);
    if (connection_->wants_read()) read();
    arm();
  }

  /// Returns false if the socket is closed.
  bool perform(const connection_actions& actions) {
    if (actions.cancel_requests) requests_->cancel_all();
    if (actions.pause_requests) requests_->pause_all();
    if (actions.resume_requests) requests_->resume_all();
    if (actions.half_close) {
      ws_.next_layer().shutdown_send();
      discard();
    }
    if (actions.close) {
      set_busy(false);
      requests_->close();
      deadline_.cancel();
      ws_.next_layer().close();
    }
    return !closed();
  }

  void write(const std::string& frame) {
    ws_.async_write(asio::buffer(frame),
                    [self = shared_from_this()](error_code error, std::size_t) {
                      self->connection_->on_written();
                      const bool over = self->connection_->now_in() >= phase::lingering;
                      if (error && !over) self->connection_->close();
                      self->act();
                    });
  }

  void send_close(const websocket_connection::close_frame& close) {
    const websocket::close_reason why(static_cast<websocket::close_code>(close.code),
                                      beast::string_view(close.reason.data(), close.reason.size()));
    ws_.async_close(why, [self = shared_from_this()](error_code) {
      self->connection_->on_close_done(clock::now());
      self->act();
    });
  }

  void arm() {
    const auto due = connection_->next_deadline();
    if (due == deadline_timer::time::max()) return;
    deadline_.at(due, [weak = weak_from_this()](auto fired) {
      auto self = weak.lock();
      if (!self) return;
      fired();
      self->connection_->on_deadline(clock::now());
      self->act();
    });
  }

  // --- reading -----------------------------------------------------------------------------------

  void set_options(const config::server_options& limits) {
    websocket::stream_base::timeout timeout{};
    timeout.handshake_timeout = limits.header_timeout;
    timeout.idle_timeout = limits.idle_timeout;
    timeout.keep_alive_pings = true;
    ws_.set_option(timeout);
    ws_.set_option(websocket::stream_base::decorator(
        [id = handshake_->request_id,
         subprotocol = handshake_->subprotocol](websocket::response_type& response) {
          response.set(http::field::server, "twill");
          response.set("X-Request-Id", id);
          if (!subprotocol.empty()) response.set(http::field::sec_websocket_protocol, subprotocol);
        }));
    ws_.read_message_max(static_cast<std::size_t>(limits.max_frame_bytes));
    ws_.control_callback([this](websocket::frame_type kind, beast::string_view) {
      if (kind == websocket::frame_type::close) on_peer_closing();
    });
    ws_.auto_fragment(false);
    ws_.text(true);
  }

  void accept() {
    ws_.async_accept(handshake_->message, [self = shared_from_this()](error_code error) {
      self->handshake_.reset();
      if (error)
        self->connection_->close();
      else
        self->connection_->on_open();
      self->act();
    });
  }

  void read() {
    if (reading_) return;
    reading_ = true;
    ws_.async_read_some(buffer_, 0, [self = shared_from_this()](error_code error, std::size_t) {
      self->reading_ = false;
      self->on_read(error);
    });
  }

  void on_read(error_code error) {
    if (closed()) return;
    if (error) {
      if (log::enabled(log::level::debug)) log::debug("websocket: " + error.message());
      connection_->on_read_failed(clock::now());
      return act();
    }
    if (connection_->now_in() == phase::open && !ws_.is_message_done() && !ws_.got_binary()) {
      const auto so_far = static_cast<std::int64_t>(buffer_.size());
      connection_->on_message_part(so_far, clock::now());
      if (received_.set(so_far)) return act();
      connection_->fail(input_is_full());
    } else if (ws_.got_binary()) {
      connection_->fail({errc::binary_frame, "frames must be text, got a binary one", ""});
    } else {
      connection_->on_message({static_cast<const char*>(buffer_.data().data()), buffer_.size()});
    }
    free_message();
    act();
  }

  /// Frees the buffer of the received message. Must not be called while a read is in progress.
  void free_message() {
    buffer_.consume(buffer_.size());
    if (buffer_.capacity() > kept_buffer_bytes) buffer_.shrink_to_fit();
    received_.clear();
  }

  /// Called when other sockets need memory and this client sends slowly. A read is in progress.
  void give_up_message() {
    if (closed() || !received_.is_cut()) return;
    connection_->give_up_message(clock::now());
    act();
  }

  /// Beast calls this function from within a read; act() is called when that read completes.
  void on_peer_closing() {
    connection_->on_peer_closing(clock::now());
    perform(connection_->take_actions());
    arm();
  }

  void discard() {
    free_message();
    // If `server.max_frame` is small, the maximum size of the buffer is below kept_buffer_bytes.
    const auto room = std::min(kept_buffer_bytes, buffer_.max_size());
    ws_.next_layer().async_read_some(buffer_.prepare(room),
                                     [self = shared_from_this()](error_code error, std::size_t) {
                                       if (self->closed()) return;
                                       if (!error) return self->discard();
                                       self->connection_->close();
                                       self->act();
                                     });
  }

  void on_engine_events() {
    auto events = requests_->take_events();
    connection_->on_engine_events(std::move(events));
    act();
  }

  server_context& context_;
  open_sockets::slot slot_;
  const listener_kind listener_;
  std::optional<websocket_handshake> handshake_;
  std::string traceparent_;
  std::optional<output_budget::account> output_;
  input_budget::account received_; ///< counts the message that is only partly received
  websocket::stream<client_stream, false> ws_;
  deadline_timer deadline_;
  beast::flat_buffer buffer_;
  std::optional<engine_requests> requests_;
  std::unique_ptr<dialect> dialect_;
  std::optional<websocket_connection> connection_;
  std::uint64_t registry_id_ = 0;
  bool reading_ = false;
};

} // namespace

void start_websocket_session(client_stream stream, open_sockets::slot slot, server_context& context,
                             websocket_handshake handshake) {
  std::make_shared<websocket_session>(std::move(stream), std::move(slot), context,
                                      std::move(handshake))
      ->start();
}

} // namespace twill::net
