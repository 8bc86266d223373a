#include "actors/pool/sum_stats.hpp"

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
  to.device_memory_used_bytes += from.device_memory_used_bytes;
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
  add(to.request_prompt_tokens, from.request_prompt_tokens);
  add(to.request_generation_tokens, from.request_generation_tokens);
  add(to.iteration_tokens, from.iteration_tokens);
}

void forget_gauges(engine_stats& of) {
  of.requests_running = of.requests_waiting = 0;
  of.kv_blocks_total = of.kv_blocks_used = 0;
  of.device_memory_used_bytes = 0;
}

} // namespace twill::actors
