#include "actors/pool/sum_stats.hpp"

#include <algorithm>
#include <cstddef>

namespace twill::actors {

namespace {

void add(histogram& to, const histogram& from) {
  if (to.bounds.empty()) {
    to = from;
    return;
  }
  for (std::size_t i = 0; i < to.counts.size() && i < from.counts.size(); ++i)
    to.counts[i] += from.counts[i];
  to.sum += from.sum;
}

} // namespace

void add_stats(engine_stats& to, const engine_stats& from) {
  to.requests_running += from.requests_running;
  to.requests_waiting += from.requests_waiting;
  to.kv_blocks_total += from.kv_blocks_total;
  to.kv_blocks_used += from.kv_blocks_used;
  if (to.kv_block_tokens == 0) to.kv_block_tokens = from.kv_block_tokens;
  if (to.kv_block_bytes == 0) to.kv_block_bytes = from.kv_block_bytes;
  if (to.streamed == nullptr) to.streamed = from.streamed;
  to.device_memory_reserved_bytes += from.device_memory_reserved_bytes;
  to.device_memory_touched_bytes += from.device_memory_touched_bytes;
  to.device_weights_bytes += from.device_weights_bytes;
  to.device_outside_bytes += from.device_outside_bytes;
  to.device_is_host = to.device_is_host || from.device_is_host;
  to.prompt_tokens += from.prompt_tokens;
  to.generation_tokens += from.generation_tokens;
  to.prefix_cache_queries += from.prefix_cache_queries;
  to.prefix_cache_hits += from.prefix_cache_hits;
  to.preemptions += from.preemptions;
  to.steps += from.steps;
  to.finished_stop += from.finished_stop;
  to.finished_length += from.finished_length;
  to.finished_abort += from.finished_abort;
  to.finished_error += from.finished_error;
  to.executor_restarts += from.executor_restarts;
  add(to.time_to_first_token_seconds, from.time_to_first_token_seconds);
  add(to.inter_token_latency_seconds, from.inter_token_latency_seconds);
  add(to.e2e_request_latency_seconds, from.e2e_request_latency_seconds);
  add(to.request_queue_time_seconds, from.request_queue_time_seconds);
  add(to.request_prefill_time_seconds, from.request_prefill_time_seconds);
  add(to.request_decode_time_seconds, from.request_decode_time_seconds);
  add(to.request_inference_time_seconds, from.request_inference_time_seconds);
  add(to.request_time_per_output_token_seconds, from.request_time_per_output_token_seconds);
  add(to.request_prompt_tokens, from.request_prompt_tokens);
  add(to.request_generation_tokens, from.request_generation_tokens);
  add(to.request_max_num_generation_tokens, from.request_max_num_generation_tokens);
  add(to.request_params_n, from.request_params_n);
  add(to.request_params_max_tokens, from.request_params_max_tokens);
  add(to.iteration_tokens, from.iteration_tokens);
  add(to.decode_step_seconds, from.decode_step_seconds);
  add(to.prefill_step_seconds, from.prefill_step_seconds);
  add(to.mixed_step_seconds, from.mixed_step_seconds);
  to.kv_tiers = to.kv_tiers || from.kv_tiers;
  to.kv_host_blocks += from.kv_host_blocks;
  to.kv_disk_blocks += from.kv_disk_blocks;
  to.kv_host_hits += from.kv_host_hits;
  to.kv_disk_hits += from.kv_disk_hits;
  to.kv_spilled_bytes += from.kv_spilled_bytes;
  to.kv_host_read_bytes += from.kv_host_read_bytes;
  to.kv_disk_read_bytes += from.kv_disk_read_bytes;
  to.kv_disk_written_bytes += from.kv_disk_written_bytes;
  to.kv_tier_failures += from.kv_tier_failures;
  to.kv_tier_dropped += from.kv_tier_dropped;
  to.kv_fetches_refused += from.kv_fetches_refused;
}

void add_tenants(std::vector<tenant_stats>& to, const std::vector<tenant_stats>& from) {
  for (const tenant_stats& more : from) {
    const auto found = std::find_if(to.begin(), to.end(), [&](const tenant_stats& one) {
      return one.tenant == more.tenant && one.model == more.model;
    });
    if (found == to.end()) {
      to.push_back(more);
      continue;
    }
    found->requests_waiting += more.requests_waiting;
    found->requests_running += more.requests_running;
    found->prompt_tokens += more.prompt_tokens;
    found->cached_prompt_tokens += more.cached_prompt_tokens;
    found->generation_tokens += more.generation_tokens;
    for (const auto& [reason, n] : more.finished)
      found->finished[reason] += n;
    add(found->time_to_first_token_seconds, more.time_to_first_token_seconds);
    add(found->time_per_output_token_seconds, more.time_per_output_token_seconds);
    add(found->e2e_request_latency_seconds, more.e2e_request_latency_seconds);
    add(found->request_queue_time_seconds, more.request_queue_time_seconds);
  }
}

void forget_gauges(engine_stats& of) {
  of.requests_running = of.requests_waiting = 0;
  of.kv_blocks_total = of.kv_blocks_used = 0;
  of.kv_host_blocks = of.kv_disk_blocks = 0;
  of.device_memory_reserved_bytes = of.device_memory_touched_bytes = of.device_weights_bytes = 0;
  of.device_outside_bytes = 0;
  of.streamed = nullptr;
}

} // namespace twill::actors
