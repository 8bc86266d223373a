// Vectors of TWILL_LANES floats for the host micro-kernels, on the compiler's vector extension.
//
// Each including source file defines TWILL_LANES and is compiled for its own instruction set, so
// everything here has internal linkage: a function built for AVX-512 must never be the copy that
// the linker keeps for everybody. For the same reason these files use no inline functions of the
// standard library.
#pragma once

#include <cstdint>

#ifdef __AVX__
#include <immintrin.h>
#endif

#ifndef TWILL_LANES
#error "define TWILL_LANES before including gpu/host/simd.hpp"
#endif

namespace twill::gpu::host {
namespace {

constexpr int lanes = TWILL_LANES;
typedef float vf __attribute__((vector_size(4 * TWILL_LANES)));
typedef std::int32_t vi __attribute__((vector_size(4 * TWILL_LANES)));

constexpr float minus_infinity = -__builtin_inff();

inline vf load(const float* p) {
  vf v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float* p, vf v) {
  __builtin_memcpy(p, &v, sizeof v);
}
inline vf splat(float x) {
  return x - vf{};
}
inline vi splat_int(std::int32_t x) {
  return x - vi{};
}
inline vf max_of(vf a, vf b) {
  return a > b ? a : b;
}
inline float largest(vf v) {
  float best = v[0];
  for (int l = 1; l < lanes; ++l)
    best = v[l] > best ? v[l] : best;
  return best;
}
inline float sum_of(vf v) {
  float part[lanes];
  __builtin_memcpy(part, &v, sizeof v);
  for (int width = lanes / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l)
      part[l] += part[l + width];
  return part[0];
}
inline vf iota() {
  vf v;
  for (int l = 0; l < lanes; ++l)
    v[l] = static_cast<float>(l);
  return v;
}

/// exp(x) within 2 ulp; 0 below -87.3, clamped above 88.3. Range reduction and polynomial after
/// Cephes' expf (S. Moshier).
inline vf exp_of(vf x) {
  const vf low = splat(-87.3f);
  const vf high = splat(88.3f);
  const vf magic = splat(12582912.0f); // 1.5 * 2^23: adding it rounds to an integer
  vf y = x < low ? low : x;
  y = y > high ? high : y;
  const vf n = (y * 1.44269504f + magic) - magic;
  vf r = n * -0.693359375f + y;
  r = n * 2.12194440e-4f + r;
  vf p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const vi exponent = (__builtin_convertvector(n, vi) + 127) << 23;
  vf power;
  __builtin_memcpy(&power, &exponent, sizeof power);
  return x < low ? vf{} : p * power;
}

} // namespace
} // namespace twill::gpu::host
