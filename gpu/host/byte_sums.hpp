// Sums of 4 runs of 32 signed bytes; both x86 SIMD policies use these functions.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "gpu/detail/packed_view.hpp"

namespace twill::gpu::host {
namespace {

struct byte_sums {
  /// out[g] is the sum of bytes [32 g, 32 g + 32). The function loads 16 bytes at a time, because
  /// the caller has just stored the bytes 16 at a time, and a load that spans two stores would
  /// stall until both are complete.
  static void sum_4(const std::int8_t* p, std::int32_t* out) {
    add_up(p, out, [](__m128i v) { return v; });
  }
  /// out[g] is the sum of the magnitudes of bytes [32 g, 32 g + 32).
  static void sum_magnitudes_4(const std::int8_t* p, std::int32_t* out) {
    add_up(p, out, [](__m128i v) { return _mm_abs_epi8(v); });
  }

private:
  template <class F>
  static void add_up(const std::int8_t* p, std::int32_t* out, const F& f) {
    const __m128i ones = _mm_set1_epi8(1);
    const auto half = [&](int i) {
      return _mm_maddubs_epi16(
          ones, f(_mm_load_si128(reinterpret_cast<const __m128i*>(p + std::ptrdiff_t{16} * i))));
    };
    __m128i fours[4];
    for (int g = 0; g < 4; ++g)
      fours[g] = _mm_madd_epi16(_mm_add_epi16(half(2 * g), half(2 * g + 1)), _mm_set1_epi16(1));
    _mm_store_si128(
        reinterpret_cast<__m128i*>(out),
        _mm_hadd_epi32(_mm_hadd_epi32(fours[0], fours[1]), _mm_hadd_epi32(fours[2], fours[3])));
  }
};

} // namespace
} // namespace twill::gpu::host
