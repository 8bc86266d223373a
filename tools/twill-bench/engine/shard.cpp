#include "tools/twill-bench/engine/shard.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include <ctime>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "tools/twill-bench/engine/api_key.hpp"
#include "tools/twill-bench/engine/conversation.hpp"
#include "tools/twill-bench/engine/deadline.hpp"

namespace twill::bench {
namespace {

namespace asio = boost::asio;

constexpr auto heartbeat = std::chrono::milliseconds(20);

double thread_cpu_s() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

} // namespace

shard::shard(timekeeper& time, const transport_factory& make_transport, const route& where,
             const protocol& dialect)
    : time_(time), beat_(time.make_alarm(context_)),
      wire_(make_transport(context_, where, dialect)) {
  asio::co_spawn(context_, measure_lag(), asio::detached);
}

shard::~shard() {
  wire_->close();
  closing_ = true;
  beat_->cancel();
  context_.restart();
  context_.run_for(std::chrono::seconds(1));
}

void shard::open() {
  std::string why;
  bool ok = false;
  asio::co_spawn(
      context_,
      [&]() -> asio::awaitable<void> {
        ok = co_await wire_->open(why);
        context_.stop();
      },
      asio::detached);
  context_.restart();
  time_.run(context_);
  if (!ok) throw std::runtime_error("cannot open a WebSocket: " + why);
}

void shard::run(job& work, std::size_t n_workers) {
  workers_ = n_workers;
  fresh_beat_ = true;
  lags_ms_.clear();
  for (std::size_t i = 0; i < n_workers; ++i)
    asio::co_spawn(context_, worker(work), asio::detached);
  context_.restart();
  const double cpu_before = thread_cpu_s();
  if (n_workers > 0) time_.run(context_);
  cpu_s_ = thread_cpu_s() - cpu_before;
}

void shard::stop() {
  asio::post(context_, [this] {
    wire_->interrupt();
    for (alarm* each : sleeping_)
      each->cancel();
  });
}

void shard::close_intake() {
  asio::post(context_, [this] {
    for (alarm* each : sleeping_)
      each->cancel();
  });
}

asio::awaitable<void> shard::worker(job& work) {
  const auto timer = time_.make_alarm(context_);
  while (!work.over()) {
    const std::size_t c = work.next.fetch_add(1);
    if (c >= work.starts.size()) break;
    const std::size_t last = c + 1 < work.starts.size() ? work.starts[c + 1] : work.prompts.size();
    co_await converse(work, work.starts[c], last, *timer);
  }
  if (--workers_ == 0) context_.stop();
}

/// Runs the turns [first, last) of a conversation, one after the other. It ends early when a turn
/// does not complete or the run ends.
asio::awaitable<void> shard::converse(job& work, std::size_t first, std::size_t last,
                                      alarm& timer) {
  conversation talk;
  for (std::size_t i = first; i < last; ++i) {
    record& out = work.records[i];
    if (i == first) {
      out.due_s = work.due_s[i];
    } else {
      const record& before = work.records[i - 1];
      if (before.how != outcome::completed || work.over()) break;
      talk.answered(before);
      out.due_s = seconds(time_.now() - work.t0) + work.options.turn_pause.count();
    }
    const clock::time_point due = work.t0 + to_span(out.due_s);
    if (time_.now() < due) {
      co_await sleep_until(timer, due);
      if (work.over()) break;
      out.timer_lag_s = seconds(time_.now() - due);
    }
    if (last - first == 1)
      co_await one(work, i, work.prompts[i]);
    else {
      const prompt turn = talk.ask(work.prompts[i]);
      co_await one(work, i, turn);
    }
  }
}

asio::awaitable<void> shard::one(job& work, std::size_t i, const prompt& asked) {
  record& out = work.records[i];
  out.asked_in_ids = !asked.ids.empty();
  out.asked_input_tokens = asked.input_tokens;
  out.asked_output_tokens = asked.output_tokens;
  const std::size_t id = work.first_id + i;
  const bool keep = work.options.save_detailed || work.options.n_turns > 1;
  exchange ex(work.dialect, out, id, work.cancels[i], keep);
  std::string message = work.dialect.request(asked, id);
  ex.started(time_.now());
  out.start_s = seconds(ex.start() - work.t0);
  ++work.counts.sent;
  co_await wire_->perform(ex, std::move(message));
  work.counts.output_tokens += out.output_tokens;
  if (out.has_ttft) {
    work.counts.ttft_us += static_cast<std::int64_t>(out.ttft_s * 1e6);
    ++work.counts.ttfts;
  }
  if (refuses_key(out.http_status) && work.counts.output_tokens == 0)
    work.counts.refused_status = out.http_status;
  ++work.counts.ended;
}

asio::awaitable<void> shard::sleep_until(alarm& timer, clock::time_point when) {
  sleeping_.insert(&timer);
  co_await timer.wait_until(when);
  sleeping_.erase(&timer);
}

asio::awaitable<void> shard::measure_lag() {
  while (!closing_) {
    const clock::time_point due = time_.now() + heartbeat;
    co_await beat_->wait_until(due);
    if (!fresh_beat_) lags_ms_.push_back(1e3 * seconds(time_.now() - due));
    fresh_beat_ = false; // the timer of a run's first beat was started before the run
  }
}

} // namespace twill::bench
