// half: widening of 16-bit floats to f32, exact for every bit pattern. The functions are pure.
#pragma once

#include <bit>
#include <cstdint>

namespace twill::models {

/// IEEE 754 binary16. Scaling by 2^112 rebiases the exponent and normalises subnormals at once.
inline float widen_f16(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000U) << 16;
  std::uint32_t bits = static_cast<std::uint32_t>(h & 0x7fffU) << 13;
  if ((h & 0x7c00U) == 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | bits);
  bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(bits) * 0x1p112f);
  return std::bit_cast<float>(sign | bits);
}

inline float widen_bf16(std::uint16_t b) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16);
}

} // namespace twill::models
