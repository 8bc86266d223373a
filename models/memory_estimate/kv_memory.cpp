#include <algorithm>
#include <limits>

#include "models/memory_estimate/memory_estimate.hpp"

namespace twill::models {

std::int32_t estimate_kv_blocks(const kv_budget& budget) {
  std::int64_t bytes = budget.asked_bytes;
  if (bytes <= 0) {
    bytes = budget.available_bytes / 4;
    if (budget.budget_bytes > 0) bytes = std::min(bytes, budget.budget_bytes - budget.other_bytes);
  }
  const std::int64_t per_sequence =
      (budget.max_context_tokens + budget.block_tokens - 1) / budget.block_tokens;
  const std::int64_t blocks =
      std::min({bytes / budget.block_bytes, per_sequence * budget.max_running,
                std::int64_t{std::numeric_limits<std::int32_t>::max() / 2}});
  return static_cast<std::int32_t>(std::max<std::int64_t>(blocks, 0));
}

serving_footprint estimate_footprint(const model& model, const compute_choice& types,
                                     const config::options& options) {
  decoder_options decoding;
  decoding.compute = types.compute;
  decoding.kv_type = types.kv_type;
  decoding.block_tokens = options.kv.block_tokens;

  serving_footprint need;
  for (const auto& tensor : model.weights->tensors())
    need.weight_bytes += tensor.bytes;
  need.kv_bytes_per_token = decoder::block_bytes(model.spec, decoding) / options.kv.block_tokens;
  need.context_tokens = model.spec.context_length;
  if (options.scheduler.max_context_tokens > 0)
    need.context_tokens = std::min(need.context_tokens, options.scheduler.max_context_tokens);
  need.kv_bytes_per_sequence = need.kv_bytes_per_token * need.context_tokens;
  return need;
}

} // namespace twill::models
