// round_loads: what the rounds of a schedule hold, summed up per sequence of a micro-batch, so that
// a plan's cost is a short sum. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "models/offload/plan/block_schedule.hpp"
#include "models/offload/plan/cost_inputs.hpp"

namespace twill::models::offload {

/// `count` rounds that hold the same mix; positions and tokens are of one sequence per micro-batch.
struct round_load {
  double count = 1;
  double n_prefills = 0;        ///< micro-batches that take step 0
  double n_decodes = 0;         ///< micro-batches that take a later step
  double context_positions = 0; ///< positions that the decodes attend to, summed over them
};

struct schedule_load {
  std::vector<round_load> rounds; ///< in no particular order
  double n_rounds = 0;
  double n_batches = 0;          ///< all that run, not only those alive at once
  double peak_kv_positions = 0;  ///< most positions stored at once, summed over micro-batches
  double peak_hidden_tokens = 0; ///< most activations between tasks, likewise
};

/// Micro-batches that `work` makes of its prompts.
std::int64_t n_batches_of(const offload_workload& work, const offload_policy& policy);

/// The schedule of all of them, each taking gen_len steps.
schedule_shape shape_of(const offload_workload& work, const offload_policy& policy,
                        std::int32_t n_layers);

/// Positions are stored in whole blocks of `block_tokens`.
schedule_load load_of(const offload_workload& work, const offload_policy& policy,
                      std::int32_t block_tokens = 1);

} // namespace twill::models::offload
