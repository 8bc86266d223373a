// serving_plan: divides the device memory of a daemon among weights, KV and the workspace of a step
// when a model does not fit. The functions are pure.
//
// A daemon runs one continuous batch, and every step fetches the streamed weights once for all its
// rows. Device memory is therefore worth most where it lets one fetch serve more tokens. It can be
// used as KV so that more sequences run at once, as workspace of a longer step, or for weights that
// then need no fetch. The planner's other choices (the order of tasks, the tiers of KV) do not
// arise in a daemon.
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
  std::int32_t max_running = 256; ///< most sequences that run at once
  std::int32_t ring_layers = 2;   ///< device memory for streamed weights, in whole layers
  std::int32_t block_tokens = 16; ///< KV is counted in whole blocks
  double small_bytes = 0;      ///< the part of the model's outer_bytes that is always on the device
  double workspace_bytes = 0;  ///< device memory that every plan needs
  double step_token_bytes = 0; ///< workspace of one row of a step
  double least_kv_bytes = 0;   ///< the least memory that KV must get
  std::optional<double> kv_bytes; ///< this option and those below have a value if the user fixed it
  std::optional<std::int32_t> step_tokens;
  std::optional<double> host_share; ///< share of the weights in host memory
};

struct serving_plan {
  std::int32_t n_sequences = 1; ///< typical requests that run at once
  std::int32_t step_tokens = 0;
  /// Prompt tokens in a step that also decodes: as many as the device can compute while the step's
  /// weights are fetched, and at least as many as are needed to keep the planned number of
  /// sequences running.
  std::int32_t mixed_prompt_tokens = 0;
  double kv_bytes = 0;
  tier_split weights;
  double tokens_per_s = 0;       ///< drawn tokens with `n_sequences` running
  double alone_tokens_per_s = 0; ///< drawn tokens of one sequence that runs alone
  offload_resource bound = offload_resource::device;
};

/// The step length if neither the user nor a plan sets another one.
inline constexpr std::int32_t default_step_tokens = 512;

/// The plan with the most tokens per second, except that shorter steps and fewer sequences are
/// preferred where they lose at most 2 % of that speed. Returns none if not even one sequence fits
/// beside the ring of streamed layers.
std::optional<serving_plan> plan_serving(const serving_request& request);

} // namespace twill::models::offload
