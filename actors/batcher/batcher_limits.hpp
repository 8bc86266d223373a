// batcher_limits: the sizes within which a batcher plans. The executor's load decides most of them,
// so they may change with each load.
#pragma once

#include <cstdint>

#include "actors/scheduling/scheduler.hpp"

namespace twill::actors {

struct batcher_limits {
  plan_limits plan;
  /// Seconds within which a step with decodes should end: plan.mixed_prompt_tokens follows how long
  /// steps take. 0: it stays as it is.
  double gap_target_s = 0;
  std::int32_t max_queued = 1024; ///< requests beyond those that run, without paused ones
  bool fair = false;              ///< clients take turns; otherwise first come first served
  std::int64_t total_blocks = 0;
  std::int32_t shareable_length = 0; ///< see prefix_cache_limits
};

} // namespace twill::actors
