// least_rate: the deadline by which a message that is being received must be complete. The
// functions are pure.
#pragma once

#include <chrono>
#include <cstdint>

namespace twill::net {

/// The longest time that a client may take to send a message: the time `first`, plus the time that
/// the bytes received so far take at `bytes_per_s`.
struct least_rate {
  std::chrono::milliseconds first;
  std::int64_t bytes_per_s;

  /// Returns the deadline for a message that began at `since` and of which `bytes` have arrived so
  /// far.
  std::chrono::steady_clock::time_point due(std::chrono::steady_clock::time_point since,
                                            std::int64_t bytes) const {
    const std::chrono::duration<double> earned(static_cast<double>(bytes) /
                                               static_cast<double>(bytes_per_s));
    return since + first + std::chrono::duration_cast<std::chrono::steady_clock::duration>(earned);
  }
};

} // namespace twill::net
