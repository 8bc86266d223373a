// Functions for kernels on any backend: rotary embedding of one head of one row, and storing the
// head's elements in each KV type.
//
// The loops have no branches and no overlapping pointers, so that host compilers vectorise them.
// Multiply-adds are written as fmaf(), because a compiler could fuse them in the vector loop but
// not in its remainder, and bits would then depend on the position of an element.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/attention/kv_element.hpp"
#include "gpu/detail/half.hpp"
#include "gpu/host/f16_rows.hpp"

namespace twill::gpu::detail {

/// Rotates the pair (a, b) by an angle whose cosine is c and whose sine is s. The loops below do
/// not call this function but repeat its code, because compilers then vectorise them better.
TWILL_KERNEL_INLINE void rotate_pair(float& a, float& b, float c, float s) {
  const float x = a;
  const float y = b;
  a = ::fmaf(x, c, -(y * s));
  b = ::fmaf(y, c, x * s);
}

/// Rotates the pairs (i, i + half).
TWILL_KERNEL_INLINE void rotate_halves(float* __restrict x, const float* __restrict c,
                                       const float* __restrict s, int half) {
  for (int i = 0; i < half; ++i) {
    const float a = x[i];
    const float b = x[i + half];
    x[i] = ::fmaf(a, c[i], -(b * s[i]));
    x[i + half] = ::fmaf(b, c[i], a * s[i]);
  }
}

/// Rotates the pairs (2i, 2i + 1).
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

/// The factors with which a row is stored as i8: value = scale * code, and code = x * inverse
/// rounded to nearest even. The scale is the row's largest magnitude / 127. A row whose values are
/// so small that `inverse` would not be finite is stored as zeros. A row with a NaN or an infinity
/// gets a scale that is not finite.
struct i8_steps {
  float inverse, scale;
};

/// The bits of |x|. Compared as integers they order like the magnitudes.
TWILL_KERNEL_INLINE std::uint32_t magnitude_bits(float x) {
  return f32_to_bits(x) & 0x7fffffffU;
}

/// The factors of a row whose largest magnitude has the bits `top`.
TWILL_KERNEL_INLINE i8_steps i8_steps_of(std::uint32_t top) {
  const float largest = bits_to_f32(top);
  const bool zero = largest <= 1e-30f;
  return {zero ? 0.0f : 127.0f / largest, zero ? 0.0f : largest / 127.0f};
}

TWILL_KERNEL_INLINE std::int8_t i8_code(float x, float inverse) {
  const float magic = 12582912.0f; // 1.5 * 2^23: the sum's low bits are the rounded integer
  return static_cast<std::int8_t>(f32_to_bits(::fmaf(x, inverse, magic)) & 0xffU);
}

/// Stores the codes of x, and returns their scale.
TWILL_KERNEL_INLINE float store_i8(std::int8_t* __restrict to, const float* __restrict x, int n) {
  std::uint32_t top = 0;
  for (int d = 0; d < n; ++d) {
    const std::uint32_t magnitude = magnitude_bits(x[d]);
    top = magnitude > top ? magnitude : top;
  }
  const i8_steps steps = i8_steps_of(top);
  for (int d = 0; d < n; ++d)
    to[d] = i8_code(x[d], steps.inverse);
  return steps.scale;
}

/// One element as a float. An i8 code is converted without its scale.
TWILL_KERNEL_INLINE float widen(float x) {
  return x;
}
TWILL_KERNEL_INLINE float widen(kv_f16 x) {
  return f16_to_f32(x.bits);
}
TWILL_KERNEL_INLINE float widen(kv_bf16 x) {
  return bf16_to_f32(x.bits);
}
TWILL_KERNEL_INLINE float widen(kv_i8 x) {
  return static_cast<float>(x.bits);
}

/// Stores x as one element of KV. The overload for int8 computes the code with the third argument,
/// i8_steps::inverse; the others ignore that argument.
TWILL_KERNEL_INLINE void store_one(float& to, float x, float) {
  to = x;
}
TWILL_KERNEL_INLINE void store_one(kv_f16& to, float x, float) {
  to.bits = f32_to_f16(x);
}
TWILL_KERNEL_INLINE void store_one(kv_bf16& to, float x, float) {
  to.bits = f32_to_bf16(x);
}
TWILL_KERNEL_INLINE void store_one(kv_i8& to, float x, float inverse) {
  to.bits = i8_code(x, inverse);
}

/// Stores a row of n elements. Returns the scale of codes, 0 for other elements.
TWILL_KERNEL_INLINE float store_row(float* to, const float* x, int n) {
  store_f32(to, x, n);
  return 0;
}
TWILL_KERNEL_INLINE float store_row(kv_f16* to, const float* x, int n) {
  store_f16(reinterpret_cast<std::uint16_t*>(to), x, n);
  return 0;
}
TWILL_KERNEL_INLINE float store_row(kv_bf16* to, const float* x, int n) {
  store_bf16(reinterpret_cast<std::uint16_t*>(to), x, n);
  return 0;
}
TWILL_KERNEL_INLINE float store_row(kv_i8* to, const float* x, int n) {
  return store_i8(reinterpret_cast<std::int8_t*>(to), x, n);
}

} // namespace twill::gpu::detail
