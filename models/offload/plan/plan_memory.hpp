// plan_memory: how many bytes a model, its KV and its activations take by its shape alone, and how
// the bytes of a plan fall on the three tiers at their peak. Pure arithmetic. What a loaded model
// takes to the byte is models/memory_estimate.
//
// The three sizes are FlexGen's (FMInference/FlexLLMGen, flexllmgen/opt_config.py) with its own
// count of biases, extended to grouped heads and gated MLPs. Its GB is 2^30 bytes.
#pragma once

#include <string>

#include "models/offload/plan/cost_inputs.hpp"
#include "models/offload/plan/round_loads.hpp"

namespace twill::models::offload {

double layer_weight_bytes(const offload_model& model);
double outer_weight_bytes(const offload_model& model);    ///< embedding, last norm, head
double kv_bytes_per_position(const offload_model& model); ///< of one layer on the device
double kv_backing_bytes_per_position(
    const offload_model& model); ///< of one layer off the device, where it may be packed

struct offload_sizes {
  double model_bytes = 0;
  double cache_bytes = 0;  ///< KV of every prompt and its output
  double hidden_bytes = 0; ///< activations of as many tokens as have KV
};

offload_sizes sizes_of(const offload_model& model, std::int32_t prompt_len, std::int32_t gen_len,
                       std::int64_t n_prompts);

/// "2.443 GB"
std::string gb_text(double bytes);
/// FlexGen's line: "model size: 2.443 GB\tcache size: 3.188 GB\thidden size (p): 0.066 GB".
std::string text_of(const offload_sizes& sizes);

struct tier_bytes {
  double device = 0;
  double host = 0;
  double disk = 0;
  double sum() const { return device + host + disk; }
};

/// The bytes of each tier at the plan's peak, by what they are for.
struct memory_projection {
  tier_bytes weights;
  tier_bytes kv;
  tier_bytes hidden;
  tier_bytes buffers; ///< staging buffers for what is streamed through a tier
  tier_bytes peak() const;
};

/// `load` is load_of() the same workload and policy, counted in the KV blocks that are stored.
memory_projection project_memory(const offload_model& model, const offload_workload& work,
                                 const offload_policy& policy, const schedule_load& load);

} // namespace twill::models::offload
