#include "actors/batcher/capacity.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

namespace twill::actors {

std::optional<request_error> no_room(const submit_prompt& prompt, std::uint64_t client,
                                     const batcher_limits& limits, const scheduler& running_set,
                                     const sequence_groups& queue) {
  const std::int32_t running = static_cast<std::int32_t>(running_set.running());
  const std::int32_t may_start = std::max(limits.plan.max_running - running, 0);
  const std::int32_t bound = limits.max_queued + may_start;
  if (queue.size() >= static_cast<std::size_t>(bound) && queue.n_waiting() >= bound)
    return request_error{
        errc::queue_full,
        "the queue is full (" + std::to_string(queue.n_waiting()) + " waiting); retry later", ""};
  const client_limits& own = prompt.limits;
  if (own.max_queued == 0) return std::nullopt;
  std::int32_t may_start_own = may_start;
  if (own.max_running > 0)
    may_start_own =
        std::min(may_start, std::max(own.max_running - running_set.running_of(client), 0));
  const std::int32_t waiting = queue.n_waiting_of(client);
  if (waiting < own.max_queued + may_start_own) return std::nullopt;
  return request_error{
      errc::queue_full,
      std::to_string(waiting) +
          " requests of this tenant wait, which is the most (`tenants.max_queued`); "
          "retry later",
      ""};
}

std::int64_t most_tokens_of_sequence(const batcher_limits& limits) {
  return limits.total_blocks * limits.plan.block_tokens + 1;
}

std::optional<request_error> misfit(const sequence_spec& spec, const batcher_limits& limits) {
  const std::int64_t capacity = most_tokens_of_sequence(limits);
  const std::int64_t needs = static_cast<std::int64_t>(spec.prompt->size()) + spec.max_new;
  if (limits.total_blocks == 0 || needs <= capacity) return std::nullopt;
  return request_error{
      errc::too_large,
      "the prompt and `max_tokens` together must be <= " + std::to_string(capacity) +
          " tokens (the KV cache after a restart of the executor), got " + std::to_string(needs),
      "max_tokens"};
}

} // namespace twill::actors
