#include "tools/twill-bench/engine/run.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <ctime>

#include <algorithm>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>

#include "tools/twill-bench/engine/deadline.hpp"
#include "tools/twill-bench/engine/random.hpp"
#include "tools/twill-bench/engine/stats.hpp"
#include "tools/twill-bench/engine/transport.hpp"

namespace twill::bench {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr auto heartbeat = std::chrono::milliseconds(20);

double seconds(clock::duration span) {
  return std::chrono::duration<double>(span).count();
}

double thread_cpu_s() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

/// What all threads of one run() share.
struct job {
  const serve_options& options;
  const protocol& dialect;
  const std::vector<prompt>& prompts;
  const std::vector<double>& due_s;
  const std::vector<cancel_plan>& cancels;
  std::vector<record>& records;
  progress_counts& counts;
  std::atomic<bool>& stop;
  std::size_t first_id; ///< ids are not used twice: a late frame of an earlier run may still come
  clock::time_point t0;
  std::atomic<std::size_t> next{0};
};

std::vector<cancel_plan> plan_cancels(const serve_options& options,
                                      const std::vector<prompt>& prompts) {
  std::vector<cancel_plan> plans(prompts.size());
  random_source random(options.seed ^ 0x63616e63656cull); // a stream of its own
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const bool chosen = random.uniform() * 100.0 < options.cancellation_percent;
    const auto after = random.between(0, std::max(0, prompts[i].output_tokens - 1));
    if (!chosen) continue;
    if (options.cancellation_delay_s)
      plans[i].after_s = options.cancellation_delay_s;
    else
      plans[i].after_tokens = static_cast<std::int32_t>(after);
  }
  return plans;
}

/// One I/O thread: its context, its connections, its share of the workers.
class shard {
public:
  shard(const route& where, const protocol& dialect)
      : beat_(context_), wire_(dialect.transport() == wire::http
                                   ? make_http_transport(context_, where)
                                   : make_websocket_transport(context_, where, dialect)) {
    asio::co_spawn(context_, measure_lag(), asio::detached);
  }

  ~shard() {
    wire_->close();
    beat_.cancel();
    closing_ = true;
    context_.restart();
    context_.run_for(std::chrono::seconds(1));
  }

  void open() {
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
    context_.run();
    if (!ok) throw std::runtime_error("cannot open a WebSocket: " + why);
  }

  /// Runs n_workers workers until the workload is used up.
  void run(job& work, std::size_t n_workers) {
    workers_ = n_workers;
    fresh_beat_ = true;
    lags_ms_.clear();
    for (std::size_t i = 0; i < n_workers; ++i)
      asio::co_spawn(context_, worker(work), asio::detached);
    context_.restart();
    const double cpu_before = thread_cpu_s();
    if (n_workers > 0) context_.run();
    cpu_s_ = thread_cpu_s() - cpu_before;
  }

  /// From any thread: running exchanges end as interrupted, sleeping workers wake.
  void stop() {
    asio::post(context_, [this] {
      wire_->interrupt();
      for (asio::steady_timer* each : sleeping_)
        each->cancel();
    });
  }

  double cpu_s() const { return cpu_s_; }
  const std::vector<double>& lags_ms() const { return lags_ms_; }

private:
  asio::awaitable<void> worker(job& work) {
    asio::steady_timer timer(context_);
    while (!work.stop) {
      const std::size_t i = work.next.fetch_add(1);
      if (i >= work.prompts.size()) break;
      record& out = work.records[i];
      out.due_s = work.due_s[i];
      const clock::time_point due = work.t0 + to_span(out.due_s);
      if (clock::now() < due) {
        co_await sleep_until(timer, due);
        if (work.stop) break;
        out.timer_lag_s = seconds(clock::now() - due);
      }
      co_await one(work, i, out);
    }
    if (--workers_ == 0) context_.stop();
  }

  asio::awaitable<void> one(job& work, std::size_t i, record& out) {
    const prompt& what = work.prompts[i];
    out.asked_input_tokens = what.input_tokens;
    out.asked_output_tokens = what.output_tokens;
    const std::size_t id = work.first_id + i;
    exchange ex(work.dialect, out, id, work.cancels[i], work.options.save_detailed);
    std::string message = work.dialect.request(what, id);
    ex.started(clock::now());
    out.start_s = seconds(ex.start() - work.t0);
    ++work.counts.sent;
    co_await wire_->perform(ex, std::move(message));
    work.counts.output_tokens += out.output_tokens;
    ++work.counts.ended;
  }

  asio::awaitable<void> sleep_until(asio::steady_timer& timer, clock::time_point when) {
    error_code woken;
    timer.expires_at(when);
    sleeping_.insert(&timer);
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    sleeping_.erase(&timer);
  }

  asio::awaitable<void> measure_lag() {
    while (!closing_) {
      error_code woken;
      const clock::time_point due = clock::now() + heartbeat;
      beat_.expires_at(due);
      co_await beat_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
      if (!fresh_beat_) lags_ms_.push_back(1e3 * seconds(clock::now() - due));
      fresh_beat_ = false; // the first beat of a run was armed before it
    }
  }

  asio::io_context context_{1};
  asio::steady_timer beat_;
  std::unique_ptr<transport> wire_;
  std::set<asio::steady_timer*> sleeping_;
  std::vector<double> lags_ms_;
  std::size_t workers_ = 0;
  double cpu_s_ = 0;
  bool fresh_beat_ = true;
  bool closing_ = false;
};

std::vector<asio::ip::tcp::endpoint> resolve(const endpoint& server) {
  asio::io_context context;
  error_code error;
  const auto found = asio::ip::tcp::resolver(context).resolve(server.host, server.port, error);
  if (error) throw std::runtime_error("cannot resolve " + server.host + ": " + error.message());
  std::vector<asio::ip::tcp::endpoint> out;
  for (const auto& each : found)
    out.push_back(each.endpoint());
  return out;
}

} // namespace

struct engine::state {
  const serve_options& options;
  const protocol& dialect;
  std::vector<std::unique_ptr<shard>> shards;
  std::atomic<bool> stop{false};
  std::size_t next_id = 0;
};

engine::engine(const serve_options& options, const protocol& dialect)
    : state_(new state{options, dialect}) {
  route where;
  where.server = parse_base_url(options.base_url);
  where.path = where.server.prefix +
               (options.endpoint.empty() ? dialect.default_endpoint() : options.endpoint);
  where.headers = options.headers;
  where.addresses = resolve(where.server);
  where.timeout = options.request_timeout;
  where.stream = options.stream;
  where.keep_alive = options.keep_alive;
  std::size_t n_shards = std::max(1u, options.io_threads);
  if (options.connections > 0) n_shards = std::min(n_shards, options.connections);
  for (std::size_t i = 0; i < n_shards; ++i) {
    where.connections = options.connections / n_shards + (i < options.connections % n_shards);
    state_->shards.push_back(std::make_unique<shard>(where, dialect));
    state_->shards.back()->open();
  }
}

engine::~engine() = default;

void engine::stop() {
  if (state_->stop.exchange(true)) return;
  for (auto& each : state_->shards)
    each->stop();
}

run_outcome engine::run(const std::vector<prompt>& prompts, const std::vector<double>& due_s,
                        std::size_t max_in_flight, progress_counts& counts) {
  run_outcome out;
  out.records.resize(prompts.size());
  counts.total = prompts.size();
  const std::vector<cancel_plan> cancels = plan_cancels(state_->options, prompts);
  const std::size_t n_workers =
      max_in_flight == 0 ? prompts.size() : std::min(max_in_flight, prompts.size());
  job work{state_->options, state_->dialect, prompts,      due_s,           cancels,
           out.records,     counts,          state_->stop, state_->next_id, clock::now()};
  state_->next_id += prompts.size();
  const std::size_t n_shards = state_->shards.size();
  std::vector<std::thread> threads;
  for (std::size_t s = 0; s < n_shards; ++s)
    threads.emplace_back([&, s] {
      state_->shards[s]->run(work, n_workers / n_shards + (s < n_workers % n_shards));
    });
  for (std::thread& each : threads)
    each.join();
  out.duration_s = seconds(clock::now() - work.t0);
  out.interrupted = state_->stop;

  std::vector<double> loop_lags_ms, send_lags_ms;
  for (const auto& each : state_->shards) {
    out.client.cpu_share = std::max(out.client.cpu_share, each->cpu_s() / out.duration_s);
    loop_lags_ms.insert(loop_lags_ms.end(), each->lags_ms().begin(), each->lags_ms().end());
  }
  for (const record& each : out.records)
    if (each.timer_lag_s >= 0) send_lags_ms.push_back(1e3 * each.timer_lag_s);
  out.client.loop_lag_p99_ms = percentile(std::move(loop_lags_ms), 99);
  out.client.send_lag_p99_ms = percentile(std::move(send_lags_ms), 99);
  return out;
}

} // namespace twill::bench
