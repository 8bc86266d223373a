// WebSocket over Beast: one request at a time on a pooled socket, or all of them over a few
// sockets.
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/websocket/stream.hpp>

#include <deque>
#include <memory>
#include <set>
#include <unordered_map>

#include "tools/twill-bench/engine/deadline.hpp"
#include "tools/twill-bench/engine/transport.hpp"

namespace twill::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;

/// An exchange whose coroutine sleeps on `wake` until its outcome, its deadline or its socket's
/// end.
struct waiter {
  waiter(asio::io_context& context, exchange& what) : ex(what), wake(context) {}
  exchange& ex;
  asio::steady_timer wake;
};

/// One socket with its reading and its writing coroutine; both hold it alive.
class link : public std::enable_shared_from_this<link> {
public:
  link(asio::io_context& context, const protocol& dialect, bool shared)
      : context_(context), dialect_(dialect), shared_(shared), socket_(context) {}

  asio::awaitable<error_code> open(const route& where, clock::time_point deadline) {
    error_code error;
    auto& tcp = beast::get_lowest_layer(socket_);
    tcp.expires_at(deadline);
    co_await tcp.async_connect(where.addresses, asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return error;
    tcp.socket().set_option(asio::ip::tcp::no_delay(true), error);
    socket_.set_option(
        websocket::stream_base::decorator([&where](websocket::request_type& request) {
          request.set(beast::http::field::user_agent, "twill-bench/" TWILL_VERSION);
          for (const auto& [name, value] : where.headers)
            request.set(name, value);
        }));
    socket_.read_message_max(64u << 20);
    co_await socket_.async_handshake(where.server.authority(), where.path,
                                     asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return error;
    tcp.expires_never();
    asio::co_spawn(context_, read_all(shared_from_this()), asio::detached);
    co_return error;
  }

  void send(std::string message) {
    outbox_.push_back(std::move(message));
    if (!writing_ && !dead_) {
      writing_ = true;
      asio::co_spawn(context_, write_all(shared_from_this()), asio::detached);
    }
  }

  void add(waiter& who) { waiting_[who.ex.id()] = &who; }
  void remove(const waiter& who) { waiting_.erase(who.ex.id()); }
  std::size_t load() const { return waiting_.size(); }
  bool sent_all() const { return outbox_.empty(); }
  bool dead() const { return dead_; }
  bool shared() const { return shared_; }
  const std::string& why() const { return why_; }

  /// Abruptly, without a close frame.
  void shut(std::string why) {
    if (dead_) return;
    dead_ = true;
    why_ = std::move(why);
    error_code ignored;
    beast::get_lowest_layer(socket_).socket().close(ignored);
    for (auto& [id, who] : waiting_)
      who->wake.cancel();
  }

private:
  static asio::awaitable<void> read_all(std::shared_ptr<link> self) {
    while (!self->dead_) {
      error_code error;
      co_await self->socket_.async_read(self->buffer_,
                                        asio::redirect_error(asio::use_awaitable, error));
      const clock::time_point now = clock::now();
      if (error) {
        std::string why = error.message();
        if (error == websocket::error::closed)
          why += " (code " + std::to_string(self->socket_.reason().code) + ")";
        co_return self->shut(std::move(why));
      }
      const auto data = self->buffer_.data();
      self->deliver({static_cast<const char*>(data.data()), data.size()}, now);
      self->buffer_.consume(self->buffer_.size());
    }
  }

  static asio::awaitable<void> write_all(std::shared_ptr<link> self) {
    while (!self->outbox_.empty() && !self->dead_) {
      error_code error;
      const std::string& message = self->outbox_.front();
      co_await self->socket_.async_write(asio::buffer(message),
                                         asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return self->shut(error.message());
      self->outbox_.pop_front();
    }
    self->writing_ = false;
    for (auto& [id, who] : self->waiting_)
      if (who->ex.cancel_due()) who->wake.cancel();
  }

  void deliver(std::string_view payload, clock::time_point at) {
    const update what = dialect_.read_event(payload);
    if (!what.owner) return deliver_unnamed(what, payload, at);
    const auto found = waiting_.find(*what.owner);
    if (found == waiting_.end()) return; // the rest of a cancelled request
    found->second->ex.event(what, payload, at);
    wake_if_over(*found->second);
  }

  /// A frame of the connection itself (a greeting, a refusal), or of the only request there is.
  void deliver_unnamed(const update& what, std::string_view payload, clock::time_point at) {
    if (what.malformed || (shared_ && !what.failed)) return;
    for (auto& [id, who] : waiting_) {
      who->ex.event(what, payload, at);
      wake_if_over(*who);
    }
  }

  static void wake_if_over(waiter& who) {
    if (who.ex.finished() || who.ex.cancel_due()) who.wake.cancel();
  }

  asio::io_context& context_;
  const protocol& dialect_;
  bool shared_;
  websocket::stream<beast::tcp_stream> socket_;
  beast::flat_buffer buffer_;
  std::deque<std::string> outbox_;
  std::unordered_map<std::size_t, waiter*> waiting_;
  bool writing_ = false;
  bool dead_ = false;
  std::string why_;
};
using link_ptr = std::shared_ptr<link>;

class websocket_transport final : public transport {
public:
  websocket_transport(asio::io_context& context, route where, const protocol& dialect)
      : context_(context), route_(std::move(where)), dialect_(dialect) {}

  asio::awaitable<bool> open(std::string& why) override {
    while (shared_.size() < route_.connections) {
      auto made = std::make_shared<link>(context_, dialect_, true);
      const error_code error = co_await made->open(route_, clock::now() + to_span(30));
      if (error) {
        why = error.message();
        co_return false;
      }
      shared_.push_back(std::move(made));
    }
    co_return true;
  }

  asio::awaitable<void> perform(exchange& what, std::string message) override {
    if (interrupted_) co_return what.interrupted();
    link_ptr on = pick();
    if (!on) on = co_await connect(what);
    if (!on) co_return;
    waiter who(context_, what);
    on->add(who);
    on->send(std::move(message));
    co_await wait(*on, who);
    on->remove(who);
    if (!on->shared() && !on->dead()) {
      if (route_.keep_alive)
        idle_.push_back(on);
      else
        on->shut("not kept");
    }
    busy_.erase(on);
  }

  void interrupt() override {
    interrupted_ = true;
    close();
  }

  void close() override {
    for (const auto& group : {std::vector<link_ptr>(busy_.begin(), busy_.end()), idle_, shared_})
      for (const link_ptr& each : group)
        each->shut("closed by this client");
  }

private:
  /// The least loaded shared socket, or an idle one of our own; null when one must be opened.
  link_ptr pick() {
    link_ptr best;
    for (const link_ptr& each : shared_)
      if (!best || best->dead() || (!each->dead() && each->load() < best->load())) best = each;
    while (!best && !idle_.empty()) {
      if (!idle_.back()->dead()) best = idle_.back();
      idle_.pop_back();
    }
    if (best && !best->shared()) busy_.insert(best);
    return best;
  }

  asio::awaitable<link_ptr> connect(exchange& what) {
    auto made = std::make_shared<link>(context_, dialect_, false);
    busy_.insert(made);
    const error_code error = co_await made->open(route_, deadline_of(what, route_.timeout));
    if (!error) co_return made;
    busy_.erase(made);
    if (interrupted_)
      what.interrupted();
    else if (error == beast::error::timeout)
      deadline_passed(what, route_.timeout);
    else
      what.fail(error == websocket::error::upgrade_declined ? "handshake" : "connect",
                error.message());
    co_return nullptr;
  }

  asio::awaitable<void> wait(link& on, waiter& who) {
    exchange& what = who.ex;
    while (!what.finished() && !on.dead()) {
      if (what.cancel_due() && on.sent_all()) {
        what.cancelled();
        drop(on, what);
        co_return;
      }
      error_code woken;
      who.wake.expires_at(deadline_of(what, route_.timeout));
      co_await who.wake.async_wait(asio::redirect_error(asio::use_awaitable, woken));
      if (woken || what.finished() || on.dead()) continue;
      deadline_passed(what, route_.timeout);
      drop(on, what);
    }
    if (interrupted_) what.interrupted();
    if (!what.finished()) what.fail("reset", on.why());
    what.ended();
  }

  /// By a message where there is one; a socket of our own may also go away without a word.
  void drop(link& on, const exchange& what) {
    std::string message = dialect_.cancel(what.id());
    const bool told = !message.empty() && !what.cancellation().abrupt;
    if (on.shared() || told) {
      if (!message.empty()) on.send(std::move(message));
    } else {
      on.shut("dropped");
    }
  }

  asio::io_context& context_;
  route route_;
  const protocol& dialect_;
  std::vector<link_ptr> shared_;
  std::vector<link_ptr> idle_;
  std::set<link_ptr> busy_; ///< sockets of our own that carry a request
  bool interrupted_ = false;
};

} // namespace

std::unique_ptr<transport> make_websocket_transport(asio::io_context& context, route where,
                                                    const protocol& dialect) {
  return std::make_unique<websocket_transport>(context, std::move(where), dialect);
}

} // namespace twill::bench
