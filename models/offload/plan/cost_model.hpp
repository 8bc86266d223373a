// cost_model: estimates how long a plan takes with a closed formula. The functions are pure.
//
// The model is FlexGen's (arXiv 2303.06865, section 4.3 and appendix A.3): six resources
// (timeline.hpp) work at the same time, and in each round of the schedule (block_schedule.hpp) a
// layer takes as long as the busiest of them. Three things differ from the paper: the estimate sums
// over the rounds of either schedule, with the context that each round has; it takes any decoder
// shape; and compute time follows the roofline model, that is, it is the larger of the time for
// arithmetic and the time for memory reads.
#pragma once

#include <array>
#include <cstdint>

#include "models/offload/plan/cost_inputs.hpp"
#include "models/offload/plan/plan_memory.hpp"
#include "models/offload/plan/round_loads.hpp"
#include "models/offload/plan/timeline.hpp"

namespace twill::models::offload {

/// The seconds that each resource is busy.
struct resource_seconds {
  std::array<double, n_offload_resources> s{};

  double& operator[](offload_resource r) { return s[static_cast<std::size_t>(r)]; }
  double operator[](offload_resource r) const { return s[static_cast<std::size_t>(r)]; }
  resource_seconds& add(const resource_seconds& other, double times = 1);
  offload_resource busiest() const;
  double most() const { return (*this)[busiest()]; }
};

/// The seconds that one task keeps each resource busy. `device_before_s` is the part of the
/// device's time before attention, in which queries, keys and values are computed.
struct task_cost {
  resource_seconds seconds;
  double device_before_s = 0;
};

/// The costs of single layers and tasks of a model on a machine under a policy.
class offload_cost {
public:
  offload_cost(const offload_model& model, const machine_description& machine,
               const offload_policy& policy, const offload_workload& work);

  /// The cost of fetching the streamed weights of one layer to the device, which happens once per
  /// round (one sweep over the layers).
  const resource_seconds& fetch() const { return fetch_; }
  const task_cost& prefill() const { return prefill_; }
  /// The cost of a decode step that attends to `context` positions, its own position included.
  task_cost decode(double context) const;
  /// The costs of the embedding and the output head: outer_fetch() is the cost of fetching their
  /// weights, once per round (one sweep over the layers); outer() is the cost of computing the head
  /// for one micro-batch of the round.
  const resource_seconds& outer_fetch() const { return outer_fetch_; }
  const resource_seconds& outer() const { return outer_; }

private:
  task_cost decode_;                ///< without attention to its context
  resource_seconds decode_context_; ///< per position of the context
  task_cost prefill_;
  resource_seconds fetch_;
  resource_seconds outer_fetch_;
  resource_seconds outer_;
};

struct offload_estimate {
  double prefill_s = 0; ///< the time that counts as prefill: of each round, the share of its
                        ///< busiest resource's work that belongs to prefills
  double decode_s = 0;
  double total_s() const { return prefill_s + decode_s; }
  double tokens_per_s = 0; ///< drawn tokens divided by the total time
  resource_seconds busy;
};

offload_estimate estimate(const offload_cost& cost, std::int32_t n_layers,
                          const offload_policy& policy, const offload_workload& work,
                          const schedule_load& load);

/// Estimates a whole plan.
offload_estimate estimate(const offload_model& model, const machine_description& machine,
                          const offload_policy& policy, const offload_workload& work);

} // namespace twill::models::offload
