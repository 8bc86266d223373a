// arithmetic: a rounded-up division and the size of an mma instruction, which counts.hpp and the
// model on paper (model.hpp) use. The functions are pure.
#pragma once

#include <cstdint>

namespace twill::bench::paper {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Multiply-adds of one mma.m16n8k16 instruction.
inline constexpr double fma_of_mma = 16.0 * 8 * 16;

} // namespace twill::bench::paper
