// Conversions between f32 and the 16-bit floating-point types, for kernels of any backend, and the
// macros that mark functions of such kernels.
//
// NVIDIA GPUs convert with one instruction, which gives the same bits except for the payload of a
// NaN. The conversions have internal linkage: files that are compiled for wider instruction sets
// use them too, and the linker must not use the copies of those files in the rest of the program,
// which has to run on any processor.
#pragma once

#include <cstdint>

#if defined(__CUDACC__) || defined(__HIPCC__)
#define TWILL_KERNEL_MEMBER __host__ __device__
#else
#define TWILL_KERNEL_MEMBER
#endif
// For functions that only files of the baseline instruction set include.
#define TWILL_KERNEL_INLINE inline TWILL_KERNEL_MEMBER
#define TWILL_KERNEL_FUNCTION static inline TWILL_KERNEL_MEMBER
// GPUs' compilers keep a local array in registers only where every loop over it is unrolled.
#if defined(__CUDACC__) || defined(__HIPCC__)
#define TWILL_UNROLL _Pragma("unroll")
#else
#define TWILL_UNROLL
#endif

namespace twill::gpu::detail {

TWILL_KERNEL_FUNCTION float bits_to_f32(std::uint32_t bits) {
  union {
    std::uint32_t u;
    float f;
  } value{bits};
  return value.f;
}

TWILL_KERNEL_FUNCTION std::uint32_t f32_to_bits(float x) {
  union {
    float f;
    std::uint32_t u;
  } value{x};
  return value.u;
}

TWILL_KERNEL_FUNCTION float bf16_to_f32(std::uint16_t h) {
  return bits_to_f32(static_cast<std::uint32_t>(h) << 16);
}

/// Rounds to nearest even; a NaN stays a NaN.
TWILL_KERNEL_FUNCTION std::uint16_t f32_to_bf16(float x) {
#if defined(__CUDA_ARCH__)
  std::uint16_t h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
#else
  const std::uint32_t u = f32_to_bits(x);
  if ((u & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((u >> 16) | 0x40U);
  return static_cast<std::uint16_t>((u + 0x7fffU + ((u >> 16) & 1U)) >> 16);
#endif
}

TWILL_KERNEL_FUNCTION float f16_to_f32(std::uint16_t h) {
#if defined(__CUDA_ARCH__)
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
#else
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000U) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(h & 0x7fffU) << 13;
  if (magnitude >= 0x0f800000U) return bits_to_f32(sign | 0x70000000U | magnitude); // inf, NaN
  if (magnitude >= 0x00800000U) return bits_to_f32(sign | (magnitude + 0x38000000U));
  // Subnormal: 2^-14 has the bits of the smallest normal; subtracting it renormalises exactly.
  const float x = bits_to_f32(magnitude + 0x38800000U) - bits_to_f32(0x38800000U);
  return bits_to_f32(sign | f32_to_bits(x));
#endif
}

/// Rounds to nearest even; overflow gives infinity, and a NaN stays a NaN.
TWILL_KERNEL_FUNCTION std::uint16_t f32_to_f16(float x) {
#if defined(__CUDA_ARCH__)
  std::uint16_t h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
#else
  const std::uint32_t u = f32_to_bits(x);
  const auto sign = static_cast<std::uint16_t>((u >> 16) & 0x8000U);
  const std::uint32_t a = u & 0x7fffffffU;
  if (a > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (a >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);
  if (a < 0x38800000U) { // subnormal in f16: let an f32 addition round at 2^-24
    const float shifted = bits_to_f32(a) + 0.5F;
    return static_cast<std::uint16_t>(sign | (f32_to_bits(shifted) - 0x3f000000U));
  }
  const std::uint32_t rounded = a + 0x00000fffU + ((a >> 13) & 1U) - 0x38000000U;
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
#endif
}

} // namespace twill::gpu::detail
