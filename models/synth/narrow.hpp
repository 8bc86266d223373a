// narrow: rounds f32 to 16-bit floats, to nearest even. Pure functions; values must be finite and
// in the range of the 16-bit type.
#pragma once

#include <bit>
#include <cstdint>

namespace twill::models::synth {

inline std::uint16_t narrow_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/// Rounds to IEEE 754 binary16. Subnormal results, which are multiples of 2^-24, are rounded by
/// adding 0.5 in f32, because f32 values from 0.5 to 1 are multiples of 2^-24 too.
inline std::uint16_t narrow_f16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t size = bits & 0x7fffffffU;
  if (size < 0x38800000U)
    return static_cast<std::uint16_t>(
        sign | (std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000U));
  return static_cast<std::uint16_t>(sign |
                                    ((size + 0xfffU + ((size >> 13) & 1U) - 0x38000000U) >> 13));
}

} // namespace twill::models::synth
