#include "tools/twill-bench/engine/run.hpp"

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "tools/twill-bench/engine/conversation.hpp"
#include "tools/twill-bench/engine/job.hpp"
#include "tools/twill-bench/engine/random.hpp"
#include "tools/twill-bench/engine/shard.hpp"
#include "tools/twill-bench/engine/stats.hpp"
#include "tools/twill-bench/engine/timekeeper.hpp"
#include "tools/twill-bench/engine/transport.hpp"

namespace twill::bench {
namespace {

namespace asio = boost::asio;

std::vector<cancel_plan> plan_cancels(const serve_options& options,
                                      const std::vector<prompt>& prompts) {
  std::vector<cancel_plan> plans(prompts.size());
  // Independent of the random numbers for prompts.
  random_source random(options.seed ^ 0x63616e63656cull);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const double drawn = random.uniform() * 100.0;
    const bool chosen = drawn < options.cancellation_percent + options.disconnect_percent;
    const auto after = random.between(0, std::max(0, prompts[i].output_tokens - 1));
    if (!chosen) continue;
    plans[i].abrupt = drawn >= options.cancellation_percent;
    if (options.cancellation_delay_s)
      plans[i].after_s = options.cancellation_delay_s;
    else
      plans[i].after_tokens = static_cast<std::int32_t>(after);
  }
  return plans;
}

/// Makes a transport over real sockets, of the kind that the backend uses.
std::unique_ptr<transport> make_socket_transport(asio::io_context& context, const route& where,
                                                 const protocol& dialect) {
  return dialect.transport() == wire::http ? make_http_transport(context, where)
                                           : make_websocket_transport(context, where, dialect);
}

} // namespace

struct engine::state {
  const serve_options& options;
  const protocol& dialect;
  timekeeper& time;
  std::vector<std::unique_ptr<shard>> shards;
  std::atomic<bool> stop{false};
  std::atomic<bool> closed{false};
  std::size_t next_id = 0;
};

engine::engine(const serve_options& options, const protocol& dialect, const engine_parts& parts)
    : state_(new state{options, dialect, parts.time ? *parts.time : real_time()}) {
  route where;
  where.server = parse_base_url(options.base_url);
  where.path = where.server.prefix +
               (options.endpoint.empty() ? dialect.default_endpoint() : options.endpoint);
  where.headers = options.headers;
  if (!parts.make_transport) where.address = find_server(where.server, options.cacert);
  where.timeout = options.request_timeout;
  where.stream = options.stream;
  where.keep_alive = options.keep_alive;
  const transport_factory make_transport =
      parts.make_transport ? parts.make_transport : make_socket_transport;
  std::size_t n_shards = std::max(1u, options.io_threads);
  if (options.connections > 0) n_shards = std::min(n_shards, options.connections);
  for (std::size_t i = 0; i < n_shards; ++i) {
    where.connections = options.connections / n_shards + (i < options.connections % n_shards);
    state_->shards.push_back(std::make_unique<shard>(state_->time, make_transport, where, dialect));
    state_->shards.back()->open();
  }
}

engine::~engine() = default;

void engine::stop() {
  if (state_->stop.exchange(true)) return;
  for (auto& each : state_->shards)
    each->stop();
}

void engine::close_intake() {
  if (state_->closed.exchange(true)) return;
  for (auto& each : state_->shards)
    each->close_intake();
}

run_outcome engine::run(const std::vector<prompt>& prompts, const std::vector<double>& due_s,
                        std::size_t max_in_flight, progress_counts& counts) {
  run_outcome out;
  out.records.resize(prompts.size());
  counts.total = prompts.size();
  const std::vector<cancel_plan> cancels = plan_cancels(state_->options, prompts);
  const std::vector<std::size_t> starts = conversation_starts(prompts);
  const std::size_t n_workers =
      max_in_flight == 0 ? starts.size() : std::min(max_in_flight, starts.size());
  state_->closed = false;
  job work{state_->options, state_->dialect, prompts,         starts,
           due_s,           cancels,         out.records,     counts,
           state_->stop,    state_->closed,  state_->next_id, state_->time.now()};
  state_->next_id += prompts.size();
  const std::size_t n_shards = state_->shards.size();
  std::vector<std::thread> threads;
  for (std::size_t s = 0; s < n_shards; ++s)
    threads.emplace_back([&, s] {
      state_->shards[s]->run(work, n_workers / n_shards + (s < n_workers % n_shards));
    });
  for (std::thread& each : threads)
    each.join();
  out.duration_s = seconds(state_->time.now() - work.t0);
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
