#include "tests/tools/scripted_transport.hpp"

#include <boost/asio/awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "tools/twill-bench/engine/deadline.hpp"
#include "tools/twill-bench/engine/sse_parser.hpp"

namespace twill::tests {
namespace {

namespace asio = boost::asio;
using bench::exchange;

class transport_by_script final : public bench::transport {
public:
  transport_by_script(asio::io_context& context, bench::route where, made_up_time& time,
                      std::function<script(int)> plan)
      : context_(context), route_(std::move(where)), time_(time), plan_(std::move(plan)) {}

  asio::awaitable<bool> open(std::string&) override { co_return true; }

  asio::awaitable<void> perform(exchange& request, std::string) override {
    const script s = plan_(next_++);
    const auto timer = time_.make_alarm(context_);
    waiting_.insert(timer.get());
    co_await play(request, s, *timer);
    waiting_.erase(timer.get());
    request.ended();
  }

  void interrupt() override {
    interrupted_ = true;
    for (bench::alarm* each : waiting_)
      each->cancel();
  }
  void close() override {}

private:
  asio::awaitable<void> play(exchange& request, const script& s, bench::alarm& timer) {
    const dialect how{route_.path, std::to_string(request.id())};
    if (s.status != 200) co_return request.refused(s.status, R"({"error":{"message":"no"}})");
    for (int i = 0; i < s.n_chunks; ++i) {
      if (i == s.cut_after) co_return request.fail("reset", "scripted cut");
      if (i == s.error_after) co_return feed(request, how, how.error());
      if (!co_await reach(request, timer, i == 0 ? s.first_ms : s.gap_ms)) co_return;
      feed(request, how, how.chunk(s, i));
      if (request.cancel_due()) co_return request.cancelled();
    }
    const std::string end = s.end_mark ? how.end(s) : "";
    if (!end.empty() && co_await reach(request, timer, s.end_ms)) feed(request, how, end);
  }

  /// Waits `after_ms`. Returns false if the exchange ended before: by a timeout or a cancellation.
  asio::awaitable<bool> reach(exchange& request, bench::alarm& timer, int after_ms) {
    if (request.cancel_due()) request.cancelled();
    const auto deadline = bench::deadline_of(request, route_.timeout);
    const auto when = time_.now() + std::chrono::milliseconds(after_ms);
    co_await timer.wait_until(std::min(when, deadline));
    if (interrupted_)
      request.interrupted();
    else if (deadline < when)
      bench::deadline_passed(request, route_.timeout);
    co_return !request.finished();
  }

  void feed(exchange& request, const dialect& how, const std::string& text) const {
    if (how.websocket()) return request.event(text, time_.now());
    bench::sse_parser events;
    events.feed(text, [&](std::string_view data) {
      request.event(data, time_.now());
      return true;
    });
  }

  asio::io_context& context_;
  bench::route route_;
  made_up_time& time_;
  std::function<script(int)> plan_;
  std::set<bench::alarm*> waiting_;
  int next_ = 0;
  bool interrupted_ = false;
};

} // namespace

bench::transport_factory scripted_transport(made_up_time& time, std::function<script(int)> plan) {
  return [&time, plan = std::move(plan)](asio::io_context& context, const bench::route& where,
                                         const bench::protocol&) {
    return std::make_unique<transport_by_script>(context, where, time, plan);
  };
}

} // namespace twill::tests
