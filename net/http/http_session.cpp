#include "net/http/http_session.hpp"

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/websocket/rfc6455.hpp>

#include "config/base/log.hpp"
#include "net/connection/deadline_timer.hpp"
#include "net/connection/engine_requests.hpp"
#include "net/error_map.hpp"
#include "net/http/http_connection.hpp"
#include "net/http/request_reader.hpp"
#include "net/http/router.hpp"
#include "net/random_id.hpp"
#include "net/websocket/websocket_session.hpp"

namespace twill::net {
namespace {

constexpr std::size_t read_bytes = 8 * 1024;
constexpr std::size_t short_body_bytes = 16 * 1024;
constexpr std::int64_t file_piece_bytes = 64 * 1024;
/// A refused body of at most this size is read and dropped, so that the connection stays open.
constexpr std::int64_t max_dropped_body_bytes = 64 * 1024;

http_connection::limits limits_of(const config::server_options& options) {
  return {{static_cast<std::size_t>(options.max_write_queue_bytes), options.slow_reader_timeout},
          {options.header_timeout, options.body_rate_bytes},
          options.idle_timeout,
          options.keep_alive};
}

class http_session final : public socket_session,
                           public std::enable_shared_from_this<http_session> {
public:
  http_session(client_stream stream, open_sockets::slot slot, server_context& context,
               client_origin origin)
      : context_(context), origin_(std::move(origin)), slot_(std::move(slot)),
        socket_(std::move(stream)), deadline_(socket_.get_executor()),
        connection_(limits_of(context.options.server), clock::now()), in_(context) {}

  ~http_session() override { context_.sessions.remove(registry_id_); }

  void start() {
    registry_id_ = context_.sessions.add(weak_from_this(), socket_use::http);
    output_.emplace(context_.output, [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->close_now();
    });
    socket_.count_into(output_->taken());
    in_.on_give_up([weak = weak_from_this(), executor = socket_.get_executor()] {
      asio::post(executor, [weak] {
        if (auto self = weak.lock()) self->give_up_body();
      });
    });
    requests_.emplace(context_.engine,
                      [weak = weak_from_this(), executor = socket_.get_executor()] {
                        asio::post(executor, [weak] {
                          if (auto self = weak.lock()) self->on_engine_events();
                        });
                      });
    if (!slot_.client().empty()) requests_->set_client(slot_.client());
    act();
  }

  void begin_drain() override {
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
      self->connection_.on_drain(clock::now());
      self->act();
    });
  }

  void close_now() override {
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
      self->connection_.close();
      self->act();
    });
  }

private:
  using clock = deadline_timer::clock;
  using phase = http_connection::phase;

  bool closed() const { return connection_.now_in() == phase::closed; }

  // --- performing the actions of the connection -------------------------------------------------

  void act() {
    connection_.press(context_.output.full());
    const auto actions = connection_.take_actions();
    if (actions.cancel_requests) requests_->cancel_all();
    if (actions.pause_requests) requests_->pause_all();
    if (actions.resume_requests) requests_->resume_all();
    if (actions.half_close) socket_.shutdown_send();
    if (actions.close) return close();
    if (closed()) return;
    output_->set(static_cast<std::int64_t>(connection_.output_bytes()));
    set_busy(origin_.listener == listener_kind::clients &&
             (connection_.now_in() != phase::idle || requests_->size() > 0 ||
              !connection_.output_empty()));
    if (const auto* bytes = connection_.begin_write(clock::now())) write(*bytes);
    read();
    arm();
  }

  void close() {
    gone_ = true;
    set_busy(false);
    requests_->close();
    file_.reset();
    deadline_.cancel();
    socket_.close();
  }

  void write(const std::string& bytes) {
    asio::async_write(
        socket_, asio::buffer(bytes),
        [self = shared_from_this()](error_code error, std::size_t) { self->on_written(error); });
  }

  void on_written(error_code error) {
    connection_.on_written(clock::now());
    if (error) connection_.close();
    pump();
  }

  void arm() {
    const auto due = connection_.next_deadline();
    if (due == deadline_timer::time::max()) return;
    deadline_.at(due, [weak = weak_from_this()](auto fired) {
      auto self = weak.lock();
      if (!self) return;
      fired();
      self->on_deadline();
    });
  }

  void on_deadline() {
    const bool was_receiving = connection_.receiving();
    connection_.on_deadline(clock::now());
    if (was_receiving && connection_.drops_input()) in_.abandon();
    act();
  }

  // --- reading -----------------------------------------------------------------------------------

  void read() {
    if (reading_) return;
    if (connection_.drops_input()) in_.input().clear();
    if (in_.full()) return;
    reading_ = true;
    socket_.async_read_some(in_.input().prepare(read_bytes),
                            [self = shared_from_this()](error_code error, std::size_t n) {
                              self->reading_ = false;
                              self->on_read(error, n);
                            });
  }

  void on_read(error_code error, std::size_t n) {
    if (closed()) return;
    if (error) {
      const bool was_receiving = connection_.receiving();
      connection_.on_peer_closed(clock::now());
      if (was_receiving && connection_.drops_input()) in_.abandon();
      return act();
    }
    if (!connection_.drops_input()) in_.input().commit(n);
    pump();
  }

  /// Parses input and answers requests until a reply has to be waited for. If that reply is a file
  /// and all earlier output has been sent, sends the next piece of the file.
  void pump() {
    while (connection_.accepts_input() && in_.has_work())
      if (!advance()) break;
    if (connection_.wants_file_piece()) send_file_piece();
    act();
  }

  /// Returns false if more bytes are needed.
  bool advance() {
    const auto now = clock::now();
    const bool between_requests = !in_.receiving();
    const auto progress = in_.advance();
    if (between_requests && (in_.receiving() || progress == request_reader::progress::failed))
      connection_.on_head_begun(now);
    switch (progress) {
    case request_reader::progress::head:
      on_head();
      return true;
    case request_reader::progress::whole:
      on_whole_request();
      return true;
    case request_reader::progress::failed:
      connection_.refuse(error_reply(in_.error()), now);
      return false;
    case request_reader::progress::need_more:
      connection_.on_body_bytes(in_.body_bytes());
      break;
    }
    return false;
  }

  /// Refuses the body being received, because other requests need its memory and this client is
  /// slow.
  void give_up_body() {
    if (closed() || !in_.must_give_up()) return;
    refuse(error_reply(input_is_full()));
    act();
  }

  // --- one request -------------------------------------------------------------------------------

  /// Decides by the head whether the body is read, read and dropped, or not read.
  void on_head() {
    const auto now = clock::now();
    const auto& head = in_.head();
    request_ = describe_request(head);
    request_.listener = origin_.listener;
    const auto forwarded = origin_.trusted_proxy
                               ? find_forwarded_client(request_.forwarded_for, context_.proxies)
                               : forwarded_client{};
    const auto client = forwarded.client.has_value() ? client_origin{forwarded.client} : origin_;
    const auto limit = context_.options.server.max_per_address;
    if (log::enabled(log::level::debug))
      log::debug(request_.request_id + " " + request_.method + " " + request_.path + " from " +
                 client.text());
    connection_.on_head({request_.request_id, head.keep_alive() && !context_.draining,
                         head.version() < 11, head.method() == http::verb::head,
                         readable_by(request_, context_), request_.style},
                        now);
    if (forwarded.malformed)
      return refuse(
          error_reply({errc::malformed_http,
                       "`X-Forwarded-For` of a trusted proxy must be a list of addresses", ""}));
    if (origin_.trusted_proxy && !slot_.count_for(counted_as(client, limit)))
      return refuse(error_reply({errc::too_many_sockets,
                                 "this client has too many connections "
                                 "(`server.max_per_address`); close some",
                                 ""}));
    is_upgrade_ = websocket::is_upgrade(head);
    if (is_upgrade_) {
      const api_error error{errc::upgrade_refused, "a WebSocket handshake must not have a body",
                            ""};
      if (in_.body_length() != 0) refuse(error_reply(error));
      return;
    }
    verdict_ = admit(request_, context_);
    const auto length = in_.body_length();
    const bool waits = beast::iequals(head[http::field::expect], "100-continue") && length != 0;
    if (const auto* refusal = std::get_if<http_reply>(&verdict_)) {
      if (!waits && length.has_value() && *length <= max_dropped_body_bytes)
        return in_.drop_body(max_dropped_body_bytes);
      return refuse(*refusal);
    }
    const auto most = std::get<admission>(verdict_).max_body_bytes;
    if (length.has_value() && *length > static_cast<std::uint64_t>(most))
      return refuse(error_reply(body_too_large(most)));
    in_.accept_body(most);
    if (waits && in_.input().size() == 0) connection_.on_continue_wanted(now);
  }

  /// Refuses the request without reading its body, and closes the connection.
  void refuse(const http_reply& reply) {
    in_.abandon();
    connection_.refuse(reply, clock::now());
  }

  void on_whole_request() {
    connection_.on_whole_request();
    if (is_upgrade_) return upgrade();
    auto message = in_.take();
    if (const auto* refusal = std::get_if<http_reply>(&verdict_))
      return connection_.on_reply(*refusal, clock::now());
    request_.body = std::move(message.body());
    body_bytes_ = request_.body.size();
    if (takes_long(request_.body)) return respond_on_worker();
    answer(respond(std::get<admission>(verdict_), std::move(request_), context_));
  }

  void upgrade() {
    auto admitted = admit_websocket(request_, context_);
    auto message = in_.take();
    std::string fault;
    if (in_.input().size() > 0)
      fault = "a WebSocket client must wait for the answer to its handshake before it sends frames";
    else if (reading_ || !connection_.output_empty())
      fault = "a WebSocket handshake must not follow other requests before they are answered";
    if (!admitted.ok() || !fault.empty()) {
      const auto error =
          admitted.ok() ? api_error{errc::upgrade_refused, fault, ""} : admitted.code();
      return connection_.refuse(error_reply(error), clock::now());
    }
    connection_.on_upgraded();
    deadline_.cancel();
    requests_->close();
    output_->set(0);
    context_.sessions.remove(registry_id_);
    start_websocket_session(std::move(socket_), std::move(slot_), context_,
                            {std::get<dialect_opener>(admitted.value().target->action),
                             admitted.value().holder, request_.request_id, request_.traceparent,
                             std::string(read_subprotocols(request_.subprotocols).named),
                             std::move(message), origin_.listener});
  }

  void answer(http_answer answer) {
    const auto now = clock::now();
    if (const auto* reply = std::get_if<http_reply>(&answer))
      return connection_.on_reply(*reply, now);
    if (auto* slow = std::get_if<slow_reply>(&answer))
      return run_on_worker(body_bytes_ + static_cast<std::size_t>(slow->bytes),
                           [work = std::move(slow->run)] { return http_answer(work()); });
    if (auto* slow = std::get_if<slow_call>(&answer))
      return run_on_worker(
          body_bytes_ + static_cast<std::size_t>(slow->bytes), [work = std::move(slow->run)] {
            return std::visit([](auto&& made) { return http_answer(std::move(made)); }, work());
          });
    if (auto* file = std::get_if<file_reply>(&answer)) {
      connection_.on_file({200, "", file->content_type, {}}, file->bytes, now);
      if (connection_.file_bytes_left() > 0) file_ = std::move(file->source);
      return;
    }
    auto& generation = std::get<call>(answer);
    engine_requests::key first = 0;
    if (generation.source != nullptr) {
      first = requests_->follow(generation.source);
      generation.requests.clear();
    }
    for (auto& request : generation.requests) {
      const auto key = requests_->start(std::move(request));
      if (first == 0) first = key;
    }
    connection_.on_call(generation, first, now);
  }

  /// True if parsing `body` may take long, because it is long or because it names an earlier
  /// response that has to be read from storage.
  static bool takes_long(const std::string& body) {
    return body.size() > short_body_bytes || body.find("previous_response_id") != std::string::npos;
  }

  /// Parses and answers the request on a worker thread.
  void respond_on_worker() {
    auto asked = std::make_shared<http_request>(std::move(request_));
    run_on_worker(body_bytes_, [this, asked, admitted = std::get<admission>(std::move(verdict_))] {
      return respond(admitted, std::move(*asked), context_);
    });
  }

  /// Runs `work` once on a worker thread; `work` must not use the mutable state of this session.
  template <class Work>
  void run_on_worker(std::size_t bytes, Work work) {
    fair_pool::task task;
    task.client = requests_->client();
    task.bytes = static_cast<std::int64_t>(bytes);
    task.is_unwanted = [self = shared_from_this()] { return self->gone_.load(); };
    task.run = [self = shared_from_this(), work = std::move(work)]() mutable {
      auto made = std::make_shared<http_answer>(work());
      asio::post(self->socket_.get_executor(), [self, made] {
        if (!self->closed()) self->answer(std::move(*made));
        self->pump();
      });
    };
    if (!context_.run_on_worker(std::move(task)))
      connection_.on_reply(error_reply({actors::errc::queue_full,
                                        "too many long bodies wait to be read; retry later", ""}),
                           clock::now());
  }

  void send_file_piece() {
    const auto bytes = std::min(connection_.file_bytes_left(), file_piece_bytes);
    std::string piece(static_cast<std::size_t>(bytes), '\0');
    if (file_ && file_->read(piece.data(), static_cast<std::streamsize>(piece.size()))) {
      connection_.on_file_piece(std::move(piece), clock::now());
      if (connection_.file_bytes_left() == 0) file_.reset();
      return;
    }
    log::warn("a file could not be read on while it was being sent");
    connection_.close(); // the reply promised a length, so only closing shows the error
  }

  void on_engine_events() {
    auto events = requests_->take_events();
    if (closed()) return;
    connection_.on_engine_events(std::move(events), clock::now());
    pump();
  }

  server_context& context_;
  const client_origin origin_;
  open_sockets::slot slot_;
  std::optional<output_budget::account> output_;
  client_stream socket_;
  deadline_timer deadline_;
  http_connection connection_;
  request_reader in_;
  http_request request_; ///< the request that is being received
  std::variant<admission, http_reply> verdict_;
  bool is_upgrade_ = false;
  std::optional<engine_requests> requests_;
  std::shared_ptr<std::istream> file_; ///< the file whose contents are being sent
  std::uint64_t registry_id_ = 0;
  bool reading_ = false;
  std::size_t body_bytes_ = 0;    ///< body size of the request that is being answered
  std::atomic<bool> gone_{false}; ///< the session is closed; read by worker threads
};

} // namespace

void start_http_session(client_stream stream, open_sockets::slot slot, server_context& context,
                        client_origin origin) {
  std::make_shared<http_session>(std::move(stream), std::move(slot), context, std::move(origin))
      ->start();
}

} // namespace twill::net
