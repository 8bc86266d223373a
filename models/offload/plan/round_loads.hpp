// round_loads: counts the prefills and decodes in the rounds of a schedule and groups equal rounds,
// so that the cost of a plan is a short sum. The functions are pure.
#pragma once

#include <cstdint>
#include <vector>

#include "models/offload/plan/block_schedule.hpp"
#include "models/offload/plan/cost_inputs.hpp"

namespace twill::models::offload {

/// `count` rounds of a schedule with the same numbers of prefills and decodes; in a round, each
/// micro-batch that is alive takes one step. The plan takes all sequences of a micro-batch to be
/// alike, so context_positions counts one of them for each micro-batch.
struct round_load {
  double count = 1;
  double n_prefills = 0;        ///< micro-batches that take step 0
  double n_decodes = 0;         ///< micro-batches that take a later step
  double context_positions = 0; ///< positions that the decodes attend to, summed over all decodes
};

struct schedule_load {
  std::vector<round_load> rounds; ///< in no particular order
  double n_rounds = 0;
  double n_batches = 0;          ///< all micro-batches of the run, not only those alive at once
  double peak_kv_positions = 0;  ///< most positions stored at once, summed over micro-batches
  double peak_hidden_tokens = 0; ///< most tokens whose activations are stored between tasks at
                                 ///< once, summed over micro-batches
};

/// The number of micro-batches into which the prompts of `work` are divided.
std::int64_t n_batches_of(const offload_workload& work, const offload_policy& policy);

/// The schedule of the micro-batches of `work`, each of which takes gen_len steps.
schedule_shape shape_of(const offload_workload& work, const offload_policy& policy,
                        std::int32_t n_layers);

/// Simulates the schedule's rounds and sums them up. Positions are counted in whole KV blocks of
/// `block_tokens`.
schedule_load load_of(const offload_workload& work, const offload_policy& policy,
                      std::int32_t block_tokens = 1);

} // namespace twill::models::offload
