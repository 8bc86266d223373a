// actor_load: runs the batcher and the KV allocator as the actors that they are in a daemon, under
// a load of many requests, and measures how long the executor waits for the next plan after it has
// sent the result of a step.
//
// The executor and the sessions are stand-ins. The executor computes nothing: like a device, it
// runs one step at a time, and every step takes equally long, or longer if the sessions are far
// behind. One actor takes the place of all sessions; it submits a new request for each that ends,
// so the number of requests stays the same.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "tools/twill-bench/plan/request_load.hpp"

namespace twill::bench {

struct actor_load_settings {
  load_settings load;
  std::chrono::milliseconds step{2}; ///< how long a step takes; 0: its result is sent at once
  std::int32_t warm_steps = 0;       ///< steps before those that are measured
  std::int32_t steps = 2000;         ///< steps that are measured
};

/// Times in seconds, one entry for each measured step.
struct actor_load_times {
  /// From the moment before the executor sends a result to the arrival of the plan that the batcher
  /// makes after it. The batcher keeps two plans outstanding, so plan n + 2 belongs to result n.
  std::vector<double> to_plan;
  /// The part of `to_plan` in which a request to the allocator was outstanding that was answered
  /// before the plan arrived.
  std::vector<double> waits;
  std::vector<double> between; ///< between the arrivals of two plans
  std::int32_t running = 0;    ///< running requests at the end
  std::int32_t waiting = 0;    ///< waiting requests at the end
};

/// Blocks until the steps are measured. Only one thread at a time may call it. Throws if the
/// batcher ends a request with an error.
actor_load_times run_actor_load(const actor_load_settings& settings);

} // namespace twill::bench
