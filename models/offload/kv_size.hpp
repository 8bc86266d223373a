// How many KV blocks to allocate. Pure arithmetic, so that the choice can be tested and explained.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace twill::models::offload {

struct kv_size_input {
  std::int64_t asked_bytes = 0;     ///< kv.memory; 0: derive
  std::int64_t available_bytes = 0; ///< memory free now where KV will live
  std::int64_t budget_bytes = 0;    ///< device.memory; 0: no cap
  std::int64_t other_bytes = 0;     ///< weights and workspace that share the budget, estimated
  std::int64_t block_bytes = 1;
  std::int32_t block_tokens = 16;
  std::int32_t max_running = 1;
  std::int32_t max_context_tokens = 1;
};

/// The asked bytes as they are; else a quarter of what is available, within the budget, and never
/// more than max_running sequences of full length could use.
inline std::int32_t kv_blocks(const kv_size_input& in) {
  std::int64_t bytes = in.asked_bytes;
  if (bytes <= 0) {
    bytes = in.available_bytes / 4;
    if (in.budget_bytes > 0) bytes = std::min(bytes, in.budget_bytes - in.other_bytes);
  }
  const std::int64_t per_sequence = (in.max_context_tokens + in.block_tokens - 1) / in.block_tokens;
  const std::int64_t blocks =
      std::min({bytes / in.block_bytes, per_sequence * in.max_running,
                std::int64_t{std::numeric_limits<std::int32_t>::max() / 2}});
  return static_cast<std::int32_t>(std::max<std::int64_t>(blocks, 0));
}

} // namespace twill::models::offload
