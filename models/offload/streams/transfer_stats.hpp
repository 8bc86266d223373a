// transfer_stats: the bytes that a stream between tiers has moved, and the time that this took.
// Plain values.
#pragma once

#include <cstdint>

namespace twill::models::offload {

struct transfer_stats {
  std::int64_t loaded_bytes = 0, stored_bytes = 0;
  double waited_seconds = 0; ///< time for which the compute waited for transfers
  double moving_seconds = 0; ///< time with at least one transfer running
};

} // namespace twill::models::offload
