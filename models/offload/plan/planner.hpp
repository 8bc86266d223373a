// offload_planner: which batch sizes, percentages and schedule serve a model that does not fit.
//
// Pure. Searches micro-batch size, their number, order, stagger, where attention runs, and the home
// tiers of weights, KV and activations for the most tokens per second (offload_cost) within the
// memory of three tiers (offload_sizes). For fixed sizes the shares are a small convex problem,
// climbed from the best corner by moving bytes between tiers, alone and in exchange. Anything may
// be fixed by the user. FlexGen described such a planner and did not release one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/base/result.hpp"
#include "models/offload/plan/cost_inputs.hpp"
#include "models/offload/plan/cost_model.hpp"
#include "models/offload/plan/plan_memory.hpp"

namespace twill::models::offload {

struct plan_request {
  offload_model model;
  machine_description machine;
  offload_workload work;
  std::optional<search_order> order; ///< here and below: fixed by the user
  std::optional<std::int32_t> batch_size;
  std::optional<std::int32_t> n_batches;
  std::optional<std::int32_t> stagger;
  std::optional<tier_split> weights;
  std::optional<tier_split> kv;
  std::optional<tier_split> hidden;
  std::optional<bool> host_attention;
  std::int32_t max_batch_size = 512;
  std::int32_t max_batches = 20;
  std::int32_t ring_layers = 2;
  std::int32_t kv_buffers = 2;
  bool outer_resident = true;
  std::int32_t block_tokens = 16;
  double workspace_bytes = 0; ///< on the device, beside what is planned
};

struct offload_plan {
  offload_policy policy;
  offload_estimate estimate;
  memory_projection memory;
  std::int64_t n_tried = 0; ///< policies that were costed
};

enum class plan_errc {
  bad_request, ///< a number breaks its rule
  does_not_fit ///< no policy tried fits the three tiers
};

twill::result<offload_plan, plan_errc> make_plan(const plan_request& request);

/// Bytes by which a projection exceeds the machine, workspace included; 0 when it fits.
double overflow_bytes(const memory_projection& memory, const plan_request& request);

} // namespace twill::models::offload
