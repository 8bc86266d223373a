// Scalar helpers for kernels, on any backend: exp that compilers vectorise, 16-bit floats.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "gpu/detail/kokkos_compat.hpp"
#include "gpu/tensor.hpp"

namespace twill::gpu::detail {

KOKKOS_INLINE_FUNCTION std::uint32_t bits_of(float x) {
  std::uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

KOKKOS_INLINE_FUNCTION float float_of(std::uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/// exp(x), within 2 ulp; clamped to the normal range. Range reduction and polynomial after Cephes'
/// expf (S. Moshier); branch-free, so that loops over it vectorise.
KOKKOS_INLINE_FUNCTION float fast_exp(float x) {
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
  return p * float_of(static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127) << 23);
}

KOKKOS_INLINE_FUNCTION float f32_from_bf16(std::uint16_t h) {
  return float_of(static_cast<std::uint32_t>(h) << 16);
}

/// Round to nearest even; NaN stays NaN.
KOKKOS_INLINE_FUNCTION std::uint16_t bf16_from_f32(float x) {
  const std::uint32_t bits = bits_of(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

KOKKOS_INLINE_FUNCTION float f32_from_f16(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
  const std::uint32_t rest = static_cast<std::uint32_t>(h & 0x7fffu) << 13;
  if (rest >= 0x0f800000u) return float_of(sign | (rest + 0x70000000u)); // inf, NaN
  // Scaling by 2^112 moves the exponent's bias and makes subnormals normal, exactly.
  return float_of(sign | bits_of(float_of(rest) * 5.192296858534828e+33f));
}

/// Round to nearest even; too large becomes infinity; NaN stays NaN.
KOKKOS_INLINE_FUNCTION std::uint16_t f16_from_f32(float x) {
  const std::uint32_t bits = bits_of(x);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t half;
  if (magnitude > 0x7f800000u)
    half = 0x7e00u;
  else if (magnitude >= 0x477ff000u)
    half = 0x7c00u;
  else if (magnitude < 0x38800000u) // subnormal: the adder of 0.5f rounds at 2^-24
    half = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u;
  else
    half = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  return static_cast<std::uint16_t>(sign | half);
}

/// Element i of an array of f32, f16 or bf16.
KOKKOS_INLINE_FUNCTION float load_as_f32(const void* data, dtype type, std::int64_t i) {
  if (type == dtype::f32) return static_cast<const float*>(data)[i];
  const std::uint16_t h = static_cast<const std::uint16_t*>(data)[i];
  return type == dtype::f16 ? f32_from_f16(h) : f32_from_bf16(h);
}

KOKKOS_INLINE_FUNCTION void store_from_f32(void* data, dtype type, std::int64_t i, float x) {
  if (type == dtype::f32)
    static_cast<float*>(data)[i] = x;
  else
    static_cast<std::uint16_t*>(data)[i] = type == dtype::f16 ? f16_from_f32(x) : bf16_from_f32(x);
}

} // namespace twill::gpu::detail
