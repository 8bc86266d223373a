// Vectors of TWILL_LANES floats for the host micro-kernels, on the compiler's vector extension.
//
// Each source file that includes this header defines TWILL_LANES and is compiled for its own
// instruction set. So everything in the header has internal linkage: a function compiled for
// AVX-512 must never be the copy that the linker keeps for the whole program. For the same reason
// the including files use no inline functions of the standard library.
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
/// a * b + c, with one rounding where the instruction set has a fused multiply-add, else with two.
/// Kernels call this function and are compiled without contraction, because a compiler that may
/// choose which products to fuse chooses differently in each instance of a kernel, and a row's bits
/// would then depend on the other rows of the batch.
inline vf fma_of(vf a, vf b, vf c) {
#if TWILL_LANES == 16 && defined(__AVX512F__)
  return reinterpret_cast<vf>(_mm512_fmadd_ps(
      reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(c)));
#elif TWILL_LANES == 8 && defined(__FMA__)
  return reinterpret_cast<vf>(_mm256_fmadd_ps(
      reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(c)));
#else
  return a * b + c;
#endif
}
inline vf max_of(vf a, vf b) {
  return a > b ? a : b;
}
inline float largest(vf v) {
#if TWILL_LANES == 16 && defined(__AVX512F__)
  return _mm512_reduce_max_ps(reinterpret_cast<__m512>(v));
#else
  float best = v[0];
  for (int l = 1; l < lanes; ++l)
    best = v[l] > best ? v[l] : best;
  return best;
#endif
}
/// Adds the upper half to the lower one until one float is left.
inline float sum_of(vf v) {
#if TWILL_LANES == 16 && defined(__AVX512F__)
  return _mm512_reduce_add_ps(reinterpret_cast<__m512>(v));
#else
  float part[lanes];
  __builtin_memcpy(part, &v, sizeof v);
  for (int width = lanes / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l)
      part[l] += part[l + width];
  return part[0];
#endif
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
  const vf n = fma_of(y, splat(1.44269504f), magic) - magic;
  vf r = fma_of(n, splat(-0.693359375f), y);
  r = fma_of(n, splat(2.12194440e-4f), r);
  vf p = fma_of(r, splat(1.9875691500e-4f), splat(1.3981999507e-3f));
  p = fma_of(p, r, splat(8.3334519073e-3f));
  p = fma_of(p, r, splat(4.1665795894e-2f));
  p = fma_of(p, r, splat(1.6666665459e-1f));
  p = fma_of(p, r, splat(5.0000001201e-1f));
  p = fma_of(p, r * r, r) + 1.0f;
  const vi exponent = (__builtin_convertvector(n, vi) + 127) << 23;
  vf power;
  __builtin_memcpy(&power, &exponent, sizeof power);
  return x < low ? vf{} : p * power;
}

} // namespace
} // namespace twill::gpu::host
