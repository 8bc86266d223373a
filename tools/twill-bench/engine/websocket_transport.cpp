// websocket_transport: sends each request on a pooled WebSocket of its own, or all requests over a
// few shared ones.
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/error.hpp>

#include <memory>
#include <random>
#include <set>
#include <string>

#include "tools/twill-bench/engine/api_key.hpp"
#include "tools/twill-bench/engine/deadline.hpp"
#include "tools/twill-bench/engine/transport.hpp"
#include "tools/twill-bench/engine/websocket_link.hpp"

namespace twill::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;

using link = websocket_link;
using link_ptr = std::shared_ptr<link>;

class websocket_transport final : public transport {
public:
  websocket_transport(asio::io_context& context, route where, const protocol& dialect)
      : context_(context), route_(std::move(where)), dialect_(dialect) {}

  asio::awaitable<bool> open(std::string& why) override {
    while (shared_.size() < route_.connections) {
      auto opened = std::make_shared<link>(context_, dialect_, masks_, true);
      const error_code error = co_await opened->open(route_, clock::now() + to_span(30));
      if (error) {
        why = opened->declined_status() > 0 ? "the server declines it with status " +
                                                  std::to_string(opened->declined_status()) + ": " +
                                                  error_text(opened->why_not_open()) +
                                                  (refuses_key(opened->declined_status())
                                                       ? std::string("; ") + how_to_give_key
                                                       : std::string())
              : opened->why_not_open().empty() ? error.message()
                                               : opened->why_not_open();
        co_return false;
      }
      shared_.push_back(std::move(opened));
    }
    co_return true;
  }

  asio::awaitable<void> perform(exchange& request, std::string message) override {
    if (interrupted_) co_return request.interrupted();
    link_ptr on = pick();
    if (!on) on = co_await connect(request);
    if (!on) co_return;
    waiter who(context_, request);
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
  /// Returns the least loaded shared socket, or an idle socket of the pool; null when a socket must
  /// be opened.
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

  asio::awaitable<link_ptr> connect(exchange& request) {
    auto opened = std::make_shared<link>(context_, dialect_, masks_, false);
    busy_.insert(opened);
    const error_code error = co_await opened->open(route_, deadline_of(request, route_.timeout));
    if (!error) co_return opened;
    busy_.erase(opened);
    if (interrupted_)
      request.interrupted();
    else if (error == beast::error::timeout)
      deadline_passed(request, route_.timeout);
    else if (refuses_key(opened->declined_status()))
      request.refused(opened->declined_status(), opened->why_not_open());
    else if (opened->declined_status() > 0)
      request.fail("handshake",
                   error.message() + ", status " + std::to_string(opened->declined_status()));
    else
      request.fail("connect",
                   opened->why_not_open().empty() ? error.message() : opened->why_not_open());
    co_return nullptr;
  }

  asio::awaitable<void> wait(link& on, waiter& who) {
    exchange& request = who.ex;
    while (!request.finished() && !on.dead()) {
      if (request.cancel_due() && on.sent_all()) {
        request.cancelled();
        drop(on, request);
        co_return;
      }
      error_code woken;
      who.wake.expires_at(deadline_of(request, route_.timeout));
      co_await who.wake.async_wait(asio::redirect_error(asio::use_awaitable, woken));
      if (woken || request.finished() || on.dead()) continue;
      deadline_passed(request, route_.timeout);
      drop(on, request);
    }
    if (interrupted_) request.interrupted();
    if (!request.finished()) request.fail(on.why_kind(), on.why());
    request.ended();
  }

  /// Cancels a request by a message, where the backend has one. Otherwise, or for an abrupt
  /// disconnect, it closes the socket, unless other requests share it.
  void drop(link& on, const exchange& request) {
    const std::string message = dialect_.cancel(request.id());
    const bool sent_cancel = !message.empty() && !request.cancellation().abrupt;
    if (on.shared() || sent_cancel) {
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
  std::set<link_ptr> busy_; ///< sockets of the pool that carry a request
  bool interrupted_ = false;
};

} // namespace

std::unique_ptr<transport> make_websocket_transport(asio::io_context& context, route where,
                                                    const protocol& dialect) {
  return std::make_unique<websocket_transport>(context, std::move(where), dialect);
}

} // namespace twill::bench
