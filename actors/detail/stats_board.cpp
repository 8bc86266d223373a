#include "actors/detail/stats_board.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <vector>

namespace twill::actors {

namespace {

histogram with_bounds(std::initializer_list<double> bounds) {
  histogram h;
  h.bounds = bounds;
  h.counts.assign(bounds.size() + 1, 0);
  return h;
}

// The bucket bounds are those of vLLM, so that dashboards made for vLLM keep working.
histogram ttft_bounds() {
  return with_bounds({.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
                      1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560});
}
histogram gap_bounds() {
  return with_bounds(
      {.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80});
}
histogram request_bounds() {
  return with_bounds(
      {.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680});
}
histogram length_bounds() {
  return with_bounds(
      {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000});
}
histogram choice_bounds() {
  return with_bounds({1, 2, 5, 10, 20});
}
histogram step_bounds() {
  return with_bounds({.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30});
}
histogram iteration_bounds() {
  return with_bounds({1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384});
}

} // namespace

void observe(histogram& h, double value, std::uint64_t n) {
  const auto bound = std::lower_bound(h.bounds.begin(), h.bounds.end(), value);
  h.counts[static_cast<std::size_t>(bound - h.bounds.begin())] += n;
  h.sum += value * static_cast<double>(n);
}

stats_board::stats_board() {
  stats_.time_to_first_token_seconds = ttft_bounds();
  stats_.inter_token_latency_seconds = gap_bounds();
  stats_.e2e_request_latency_seconds = request_bounds();
  stats_.request_queue_time_seconds = request_bounds();
  stats_.request_prefill_time_seconds = request_bounds();
  stats_.request_decode_time_seconds = request_bounds();
  stats_.request_inference_time_seconds = request_bounds();
  stats_.request_time_per_output_token_seconds = gap_bounds();
  stats_.request_prompt_tokens = length_bounds();
  stats_.request_generation_tokens = length_bounds();
  stats_.request_max_num_generation_tokens = length_bounds();
  stats_.request_params_n = choice_bounds();
  stats_.request_params_max_tokens = length_bounds();
  stats_.iteration_tokens = iteration_bounds();
  stats_.decode_step_seconds = step_bounds();
  stats_.prefill_step_seconds = step_bounds();
  stats_.mixed_step_seconds = step_bounds();
}

engine_stats stats_board::read() const {
  engine_stats now;
  std::function<std::int64_t()> untouched_bytes;
  {
    const std::lock_guard lock(mutex_);
    now = stats_;
    untouched_bytes = untouched_bytes_;
  }
  // Measured without the lock: it is a system call, for which no actor must wait.
  const std::int64_t untouched = untouched_bytes ? untouched_bytes() : 0;
  now.device_memory_touched_bytes =
      std::max<std::int64_t>(now.device_memory_reserved_bytes - untouched, 0);
  return now;
}

tenant_stats& stats_board::entry_of(const std::string& tenant, const std::string& model) {
  const auto [found, fresh] = tenants_.try_emplace({tenant, model});
  tenant_stats& entry = found->second;
  if (!fresh) return entry;
  entry.tenant = tenant;
  entry.model = model;
  entry.time_to_first_token_seconds = ttft_bounds();
  entry.time_per_output_token_seconds = gap_bounds();
  entry.e2e_request_latency_seconds = request_bounds();
  entry.request_queue_time_seconds = request_bounds();
  return entry;
}

std::vector<tenant_stats> stats_board::read_tenants() const {
  const std::lock_guard lock(mutex_);
  std::vector<tenant_stats> all;
  for (const auto& [key, entry] : tenants_)
    all.push_back(entry);
  return all;
}

} // namespace twill::actors
