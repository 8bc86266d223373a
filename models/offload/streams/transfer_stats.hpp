// transfer_stats: what a stream between tiers moved and how long that took. Plain values.
#pragma once

#include <cstdint>

namespace twill::models::offload {

struct transfer_stats {
  std::int64_t loaded_bytes = 0, stored_bytes = 0;
  double waited_seconds = 0; ///< that the compute waited for transfers
  double moving_seconds = 0; ///< with at least one transfer under way
};

} // namespace twill::models::offload
