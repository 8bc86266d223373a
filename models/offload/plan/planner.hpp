// planner: searches the batch sizes, the shares of the memory tiers and the schedule with which an
// offline job runs a model that does not fit on its device.
//
// The functions are pure. The planner searches the size and number of micro-batches, their order
// and stagger (block_schedule), where attention runs, and the tiers of weights, KV and activations
// for the most tokens per second (cost_model) within the memory of three tiers (plan_memory). For
// fixed sizes, choosing the shares of the tiers is a small convex problem: hill climbing starts
// from the best plan that keeps each kind of bytes in a single tier, and moves bytes between tiers,
// one kind alone or two kinds in exchange. A user may fix any of the searched values. FlexGen's
// paper describes such a policy search, but its authors did not release one.
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
  std::optional<search_order> order; ///< this option and those below up to host_attention have a
                                     ///< value if the user fixed it
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
  double workspace_bytes = 0; ///< device memory that every plan needs
};

struct offload_plan {
  offload_policy policy;
  offload_estimate estimate;
  memory_projection memory;
  std::int64_t n_tried = 0; ///< policies whose cost was computed
};

enum class plan_errc {
  bad_request, ///< a number breaks its rule
  does_not_fit ///< none of the tried policies fits in the memory of the three tiers
};

twill::result<offload_plan, plan_errc> make_plan(const plan_request& request);

/// Bytes by which a projection, together with the workspace, exceeds the machine's memory; 0 when
/// it fits.
double overflow_bytes(const memory_projection& memory, const plan_request& request);

} // namespace twill::models::offload
