// Converts rows of floats to f16 by the processor's F16C instruction, if the build's baseline
// instruction set has it. narrow_to_f16() is pure. It has internal linkage, because files compiled
// for wider instruction sets may use it too.
#pragma once

#include <cstdint>

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace twill::gpu::host {

/// Rounds the leading elements of x to nearest even and returns how many it converted.
static inline int narrow_to_f16([[maybe_unused]] std::uint16_t* to, [[maybe_unused]] const float* x,
                                [[maybe_unused]] int n) {
  int d = 0;
#ifdef __F16C__
  for (; d + 8 <= n; d += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + d),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + d), _MM_FROUND_TO_NEAREST_INT));
#endif
  return d;
}

} // namespace twill::gpu::host
