// plan_memory: estimates the bytes of a model, its KV and its activations from the model's shape
// alone, and the peak bytes that a plan needs in each of the three tiers. Pure arithmetic.
// models/memory_estimate computes the exact bytes of a loaded model.
//
// The formulas of the three sizes are FlexGen's (FMInference/FlexLLMGen, flexllmgen/opt_config.py),
// with FlexGen's way of counting biases, extended to grouped heads and gated MLPs. FlexGen's GB is
// 2^30 bytes.
#pragma once

#include <string>

#include "models/offload/plan/cost_inputs.hpp"
#include "models/offload/plan/round_loads.hpp"

namespace twill::models::offload {

double layer_weight_bytes(const offload_model& model);
double outer_weight_bytes(const offload_model& model); ///< bytes of embedding, last norm and head
double kv_bytes_per_position(const offload_model& model); ///< KV of one layer on the device
double kv_backing_bytes_per_position(
    const offload_model& model); ///< KV of one layer off the device, where KV may be packed

struct offload_sizes {
  double model_bytes = 0;
  double cache_bytes = 0;  ///< KV of every prompt and its output
  double hidden_bytes = 0; ///< activations of as many tokens as cache_bytes counts
};

offload_sizes sizes_of(const offload_model& model, std::int32_t prompt_len, std::int32_t gen_len,
                       std::int64_t n_prompts);

/// "2.443 GB"
std::string gb_text(double bytes);
/// Writes the sizes as FlexGen prints them: "model size: 2.443 GB\tcache size: 3.188 GB\thidden
/// size (p): 0.066 GB".
std::string text_of(const offload_sizes& sizes);

struct tier_bytes {
  double device = 0;
  double host = 0;
  double disk = 0;
  double sum() const { return device + host + disk; }
};

/// The bytes of each tier at the plan's peak, listed by their use.
struct memory_projection {
  tier_bytes weights;
  tier_bytes kv;
  tier_bytes hidden;
  tier_bytes buffers; ///< staging buffers for what is streamed through a tier
  tier_bytes peak() const;
};

/// `load` must be load_of(work, policy, block_tokens) with the block_tokens of the KV blocks that
/// are stored.
memory_projection project_memory(const offload_model& model, const offload_workload& work,
                                 const offload_policy& policy, const schedule_load& load);

} // namespace twill::models::offload
