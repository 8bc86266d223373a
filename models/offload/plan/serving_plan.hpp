// serving_plan: how a daemon shares the device among weights, KV and the rows of a step when a
// model does not fit. Pure.
//
// A daemon runs one continuous batch, and every step fetches the streamed weights once for all its
// rows. So memory is worth most where it lets one fetch serve more tokens: as KV for more most
// sequences at once, as a longer step, or as weights that need no fetch. The other choices of the
// planner (order, tiers of KV) do not arise.
#pragma once

#include <cstdint>
#include <optional>

#include "models/offload/plan/cost_inputs.hpp"
#include "models/offload/plan/cost_model.hpp"

namespace twill::models::offload {

struct serving_request {
  offload_model model;
  machine_description machine;
  offload_workload work;          ///< a typical request; n_prompts is not used
  std::int32_t max_running = 256; ///< sequences at once
  std::int32_t ring_layers = 2;   ///< device memory for streamed weights, in whole layers
  std::int32_t block_tokens = 16; ///< KV is counted in whole blocks
  double small_bytes = 0;         ///< always on the device, part of the model's outer bytes
  double workspace_bytes = 0;     ///< on the device whatever is planned
  double step_token_bytes = 0;    ///< workspace of one row of a step
  double least_kv_bytes = 0;      ///< the least that KV gets
  std::optional<double> kv_bytes; ///< this and the following are set if the user fixed them
  std::optional<std::int32_t> step_tokens;
  std::optional<double> host_share; ///< of the weights
};

struct serving_plan {
  std::int32_t n_sequences = 1; ///< typical requests that run at once
  std::int32_t step_tokens = 0;
  /// Prompt tokens in a step that also decodes: as many as the device computes while weights are
  /// fetched, and at least as many as keep the planned number of sequences running.
  std::int32_t mixed_prompt_tokens = 0;
  double kv_bytes = 0;
  tier_split weights;
  double tokens_per_s = 0;       ///< drawn tokens with `n_sequences` running
  double alone_tokens_per_s = 0; ///< drawn tokens of one sequence that runs alone
  offload_resource bound = offload_resource::device;
};

/// The step length unless the user or a plan gives another.
inline constexpr std::int32_t default_step_tokens = 512;

/// The plan with the most tokens per second. Among plans within 2 % it prefers shorter steps and
/// fewer sequences. Nothing if not even one sequence fits beside the ring.
std::optional<serving_plan> plan_serving(const serving_request& request);

} // namespace twill::models::offload
