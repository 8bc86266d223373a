// WebSocket: one request at a time on a pooled socket, or all of them over a few sockets.
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/websocket/error.hpp>

#include <memory>
#include <random>
#include <set>

#include "tools/twill-bench/engine/deadline.hpp"
#include "tools/twill-bench/engine/transport.hpp"
#include "tools/twill-bench/engine/websocket_link.hpp"

namespace twill::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;

using link = websocket_link;
using link_ptr = std::shared_ptr<link>;

class websocket_transport final : public transport {
public:
  websocket_transport(asio::io_context& context, route where, const protocol& dialect)
      : context_(context), route_(std::move(where)), dialect_(dialect) {}

  asio::awaitable<bool> open(std::string& why) override {
    while (shared_.size() < route_.connections) {
      auto made = std::make_shared<link>(context_, dialect_, masks_, true);
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
    on->send(message);
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
    auto made = std::make_shared<link>(context_, dialect_, masks_, false);
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
    if (!what.finished()) what.fail(on.why_kind(), on.why());
    what.ended();
  }

  /// By a message where there is one; a socket of our own may also go away without a word.
  void drop(link& on, const exchange& what) {
    const std::string message = dialect_.cancel(what.id());
    const bool told = !message.empty() && !what.cancellation().abrupt;
    if (on.shared() || told) {
      if (!message.empty()) on.send(message);
    } else {
      on.shut("dropped");
    }
  }

  asio::io_context& context_;
  route route_;
  const protocol& dialect_;
  std::mt19937 masks_{std::random_device{}()};
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
