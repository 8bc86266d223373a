#include "models/checkpoint/element.hpp"

#include <array>
#include <cstring>

#include "models/checkpoint/half.hpp"

namespace twill::models {
namespace {

using gpu::weight_kind;

constexpr element_info other(const char* name, std::int32_t bytes) {
  return {name, bytes, false, weight_kind::f32};
}

constexpr std::array elements = {
    element_info{"F32", 4, true, weight_kind::f32},
    element_info{"F16", 2, true, weight_kind::f16},
    element_info{"BF16", 2, true, weight_kind::bf16},
    other("F64", 8),
    other("I64", 8),
    other("I32", 4),
    other("I16", 2),
    other("I8", 1),
    other("U64", 8),
    other("U32", 4),
    other("U16", 2),
    other("U8", 1),
    other("BOOL", 1),
    other("F8_E4M3", 1),
    other("F8_E5M2", 1),
};

} // namespace

const element_info* find_element(std::string_view name) {
  for (const element_info& e : elements)
    if (name == e.name) return &e;
  return nullptr;
}

void widen_values(gpu::weight_kind dense, const std::byte* values, std::int64_t n, float* out) {
  if (dense == weight_kind::f32) {
    if (n > 0) std::memcpy(out, values, static_cast<std::size_t>(n) * sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, values + 2 * i, sizeof bits);
    out[i] = dense == weight_kind::f16 ? widen_f16(bits) : widen_bf16(bits);
  }
}

} // namespace twill::models
