// Rotary embedding of one head of one row, and its store to KV in each KV type. For kernels on any
// backend.
//
// The loops have no branch and no overlap, so that host compilers vectorise them. Products are
// fused by hand, because a compiler could fuse differently in the vector loop and in its remainder.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/detail/half.hpp"
#include "gpu/host/f16_rows.hpp"

namespace twill::gpu::detail {

/// Pairs (i, i + half).
TWILL_KERNEL_INLINE void rotate_halves(float* __restrict x, const float* __restrict c,
                                       const float* __restrict s, int half) {
  for (int i = 0; i < half; ++i) {
    const float a = x[i];
    const float b = x[i + half];
    x[i] = ::fmaf(a, c[i], -(b * s[i]));
    x[i + half] = ::fmaf(b, c[i], a * s[i]);
  }
}

/// Pairs (2i, 2i + 1).
TWILL_KERNEL_INLINE void rotate_pairs(float* __restrict x, const float* __restrict c,
                                      const float* __restrict s, int half) {
  for (int i = 0; i < half; ++i) {
    const float a = x[2 * i];
    const float b = x[2 * i + 1];
    x[2 * i] = ::fmaf(a, c[i], -(b * s[i]));
    x[2 * i + 1] = ::fmaf(b, c[i], a * s[i]);
  }
}

TWILL_KERNEL_INLINE void store_f32(float* __restrict to, const float* __restrict x, int n) {
  for (int d = 0; d < n; ++d)
    to[d] = x[d];
}

TWILL_KERNEL_INLINE void store_bf16(std::uint16_t* __restrict to, const float* __restrict x,
                                    int n) {
  for (int d = 0; d < n; ++d)
    to[d] = f32_to_bf16(x[d]);
}

TWILL_KERNEL_INLINE void store_f16(std::uint16_t* __restrict to, const float* __restrict x, int n) {
#if defined(__CUDACC__) || defined(__HIPCC__)
  int d = 0;
#else
  int d = host::narrow_to_f16(to, x, n);
#endif
  for (; d < n; ++d)
    to[d] = f32_to_f16(x[d]);
}

/// Stores x as multiples of the returned scale, which is the largest magnitude / 127. A row so
/// small that the reciprocal is not finite counts as zero. A row with a NaN or an infinity gets a
/// scale that is not finite.
TWILL_KERNEL_INLINE float store_i8(std::int8_t* __restrict to, const float* __restrict x, int n) {
  std::uint32_t top = 0; // magnitudes order like their bits
  for (int d = 0; d < n; ++d) {
    const std::uint32_t magnitude = f32_to_bits(x[d]) & 0x7fffffffU;
    top = magnitude > top ? magnitude : top;
  }
  const float largest = bits_to_f32(top);
  const bool zero = largest <= 1e-30f;
  const float inverse = zero ? 0.0f : 127.0f / largest;
  for (int d = 0; d < n; ++d) {
    const float magic = 12582912.0f; // 1.5 * 2^23: the sum's low bits are the rounded integer
    to[d] = static_cast<std::int8_t>(f32_to_bits(::fmaf(x[d], inverse, magic)) & 0xffU);
  }
  return zero ? 0.0f : largest / 127.0f;
}

} // namespace twill::gpu::detail
