// serving_plan: how a daemon shares the device among weights, KV and a step's rows when a model
// does not fit. Pure.
//
// A daemon runs one fused batch: every step fetches the streamed weights once for all its rows. So
// memory is worth most where it lets a fetch serve more tokens: KV for more sequences at once, a
// longer step, or weights that need no fetch. What else offload_planner searches (orders, tiers of
// KV) does not arise.
#pragma once

#include <cstdint>
#include <optional>

#include "models/offload/plan/cost_inputs.hpp"
#include "models/offload/plan/cost_model.hpp"

namespace twill::models::offload {

struct serving_request {
  offload_model model;
  machine_description machine;
  offload_workload work;          ///< a typical request; n_prompts is not looked at
  std::int32_t max_running = 256; ///< sequences at once
  std::int32_t ring_layers = 2;   ///< of streamed weights on the device
  std::int32_t block_tokens = 16; ///< KV is taken in whole blocks
  double small_bytes = 0;         ///< on the device always, part of the model's outer bytes
  double workspace_bytes = 0;     ///< on the device whatever is planned
  double step_token_bytes = 0;    ///< workspace of one row of a step
  double least_kv_bytes = 0;      ///< KV never gets less
  std::optional<double> kv_bytes; ///< here and below: fixed by the user
  std::optional<std::int32_t> step_tokens;
  std::optional<double> host_share; ///< of the weights
};

struct serving_plan {
  std::int32_t n_sequences = 1; ///< of the typical request, at once
  std::int32_t step_tokens = 0;
  /// Tokens of prompts beside decodes: as many as the device computes while weights are fetched,
  /// and no fewer than keep sequences coming.
  std::int32_t mixed_prompt_tokens = 0;
  double kv_bytes = 0;
  tier_split weights;
  double tokens_per_s = 0; ///< drawn tokens, with as many sequences under way
  offload_resource bound = offload_resource::device;
};

/// The step length where neither the user nor a plan says another.
inline constexpr std::int32_t default_step_tokens = 512;

/// The plan with the most tokens per second, of equals (within 2 %) the one with the shorter steps
/// and fewer sequences. Nothing when not even one sequence fits beside the ring.
std::optional<serving_plan> plan_serving(const serving_request& request);

} // namespace twill::models::offload
