// activation_element: the element types that activations may have, for kernels of any backend. Ops
// compute in f32; the 16-bit types are for activations that only linear() reads.
#pragma once

#include <cstdint>

#include "gpu/detail/half.hpp"
#include "gpu/tensor.hpp"

namespace twill::gpu::detail {

struct f32_element {
  using stored = float;
  static constexpr dtype type = dtype::f32;
  static constexpr bool rounds = false;
  TWILL_KERNEL_MEMBER static float narrow(float x) { return x; }
  TWILL_KERNEL_MEMBER static float widen(float x) { return x; }
};
struct f16_element {
  using stored = std::uint16_t;
  static constexpr dtype type = dtype::f16;
  static constexpr bool rounds = true;
  TWILL_KERNEL_MEMBER static std::uint16_t narrow(float x) { return f32_to_f16(x); }
  TWILL_KERNEL_MEMBER static float widen(std::uint16_t h) { return f16_to_f32(h); }
};
struct bf16_element {
  using stored = std::uint16_t;
  static constexpr dtype type = dtype::bf16;
  static constexpr bool rounds = true;
  TWILL_KERNEL_MEMBER static std::uint16_t narrow(float x) { return f32_to_bf16(x); }
  TWILL_KERNEL_MEMBER static float widen(std::uint16_t h) { return bf16_to_f32(h); }
};

constexpr bool is_activation_type(dtype type) {
  return type == dtype::f32 || type == dtype::f16 || type == dtype::bf16;
}

/// Calls f(Element{}) with the element struct of `type`, for which is_activation_type() must hold.
template <class F>
TWILL_KERNEL_FUNCTION void with_activation_element(dtype type, const F& f) {
  if (type == dtype::f16)
    f(f16_element{});
  else if (type == dtype::bf16)
    f(bf16_element{});
  else
    f(f32_element{});
}

} // namespace twill::gpu::detail
