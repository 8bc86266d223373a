// transfer_stats: what a stream between tiers moved, and what it cost. Plain values.
#pragma once

#include <cstdint>

namespace twill::models::offload {

struct transfer_stats {
  std::int64_t loaded_bytes = 0, stored_bytes = 0;
  double waited_seconds = 0; ///< that the compute stood still for it
  double moving_seconds = 0; ///< with a transfer under way
};

} // namespace twill::models::offload
