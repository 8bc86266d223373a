// Philox4x32-10, a counter-based generator: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel
// random numbers: as easy as 1, 2, 3", SC'11. A random number depends on (seed, counter) alone.
#pragma once

#include <cstdint>

#include "gpu/detail/half.hpp"

namespace twill::gpu::detail {

struct philox_counter {
  std::uint32_t word[4];
};

TWILL_KERNEL_INLINE philox_counter philox4x32(philox_counter counter, std::uint32_t key0,
                                              std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter.word[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter.word[2];
    counter = {{static_cast<std::uint32_t>(b >> 32) ^ counter.word[1] ^ key0,
                static_cast<std::uint32_t>(b),
                static_cast<std::uint32_t>(a >> 32) ^ counter.word[3] ^ key1,
                static_cast<std::uint32_t>(a)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/// Uniform in [0, 1), 53 bits.
TWILL_KERNEL_INLINE double uniform(std::uint64_t seed, std::uint64_t counter) {
  const philox_counter drawn = philox4x32(
      {{static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0}},
      static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
  const std::uint64_t bits = (std::uint64_t{drawn.word[0]} << 32) | drawn.word[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

} // namespace twill::gpu::detail
