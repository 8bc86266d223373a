// least_rate: by when a message must have arrived. Pure.
#pragma once

#include <chrono>
#include <cstdint>

namespace twill::net {

/// How fast what a client sends must come: within `first`, and beyond that at this rate.
struct least_rate {
  std::chrono::milliseconds first;
  std::int64_t bytes_per_s;

  /// The deadline of a message that began at `since` and of which `bytes` have arrived.
  std::chrono::steady_clock::time_point due(std::chrono::steady_clock::time_point since,
                                            std::int64_t bytes) const {
    const std::chrono::duration<double> earned(static_cast<double>(bytes) /
                                               static_cast<double>(bytes_per_s));
    return since + first + std::chrono::duration_cast<std::chrono::steady_clock::duration>(earned);
  }
};

} // namespace twill::net
