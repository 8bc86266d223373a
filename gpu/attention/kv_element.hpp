// kv_element: the table of the element types of keys and values. The checks of arguments, the
// values of the option `kv.type` and the kernels of every backend use this table, so the build
// fails if a kernel does not handle one of the types. config/ must not include gpu/ and therefore
// repeats the values of `kv.type`; a test checks that both lists agree.
//
// To add a type, write its struct and its kv_element, add it to kv_elements, and fix what no longer
// compiles. CONTRIBUTING.md lists the files that the compiler does not report.
#pragma once

#include <cstdint>

#include "gpu/detail/half.hpp"
#include "gpu/tensor.hpp"

namespace twill::gpu {

// The element types as they are stored; the element of f32 KV is float.
struct kv_f16 {
  std::uint16_t bits;
};
struct kv_bf16 {
  std::uint16_t bits;
};
/// An int8 code: the value is scale * bits, with one scale for each head and token.
struct kv_i8 {
  std::int8_t bits;
};

/// The properties of an element type. `key` is its name in the option `kv.type`.
template <class Element>
struct kv_element;
template <>
struct kv_element<float> {
  static constexpr const char* key = "f32";
  static constexpr dtype type = dtype::f32;
  static constexpr bool scaled = false;
};
template <>
struct kv_element<kv_f16> {
  static constexpr const char* key = "f16";
  static constexpr dtype type = dtype::f16;
  static constexpr bool scaled = false;
};
template <>
struct kv_element<kv_bf16> {
  static constexpr const char* key = "bf16";
  static constexpr dtype type = dtype::bf16;
  static constexpr bool scaled = false;
};
template <>
struct kv_element<kv_i8> {
  static constexpr const char* key = "int8";
  static constexpr dtype type = dtype::i8;
  static constexpr bool scaled = true;
};

template <class... Elements>
struct kv_element_list {
  static_assert(((sizeof(Elements) == size_of(kv_element<Elements>::type)) && ...));
};
using kv_elements = kv_element_list<float, kv_f16, kv_bf16, kv_i8>;

namespace detail {

template <class... Elements>
TWILL_KERNEL_FUNCTION constexpr bool has_type(kv_element_list<Elements...>, dtype type) {
  return ((type == kv_element<Elements>::type) || ...);
}

template <class... Elements>
TWILL_KERNEL_FUNCTION constexpr bool has_scales(kv_element_list<Elements...>, dtype type) {
  return ((type == kv_element<Elements>::type && kv_element<Elements>::scaled) || ...);
}

template <class First, class... Rest, class F>
TWILL_KERNEL_FUNCTION auto with_element(kv_element_list<First, Rest...>, dtype type, const F& f) {
  if constexpr (sizeof...(Rest) == 0) {
    return f(First{});
  } else {
    if (type == kv_element<First>::type) return f(First{});
    return with_element(kv_element_list<Rest...>{}, type, f);
  }
}

} // namespace detail

TWILL_KERNEL_FUNCTION constexpr bool is_kv_type(dtype type) {
  return detail::has_type(kv_elements{}, type);
}

/// Whether KV of this type has a scale for each head and token.
TWILL_KERNEL_FUNCTION constexpr bool has_kv_scales(dtype type) {
  return detail::has_scales(kv_elements{}, type);
}

/// Calls f(Element{}) with the element struct of `type`, for which is_kv_type() must hold. f must
/// return one type for all elements.
template <class F>
TWILL_KERNEL_FUNCTION auto with_kv_element(dtype type, const F& f) {
  return detail::with_element(kv_elements{}, type, f);
}

} // namespace twill::gpu
