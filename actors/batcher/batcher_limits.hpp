// batcher_limits: the limits within which a batcher plans steps. Most of them are determined when
// the executor loads the model, so they may change with each load.
#pragma once

#include <cstdint>

#include "actors/scheduling/scheduler.hpp"

namespace twill::actors {

struct batcher_limits {
  plan_limits plan;
  /// The target duration, in seconds, of a step with decodes. To meet it, plan.mixed_prompt_tokens
  /// (the most prompt tokens in such a step) is adapted to measured step times. 0:
  /// plan.mixed_prompt_tokens stays as it is.
  double gap_target_s = 0;
  std::int32_t max_queued = 1024; ///< the most waiting requests, not counting paused ones
  bool fair = false; ///< true: clients take turns (fair_policy); false: first come first served
  std::int64_t total_blocks = 0;
  std::int32_t shareable_length = 0; ///< see prefix_cache_limits
};

} // namespace twill::actors
