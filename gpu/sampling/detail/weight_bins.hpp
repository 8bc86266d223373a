// Binning of weights by their bits, and sums of weights (masses) that do not depend on the order of
// addition.
//
// A weight is a float in [0, 1]; the bits of such floats, compared as integers, order like the
// floats. Each level uses ten of the thirty bits to assign a weight to one of 1024 bins, so three
// levels of bins identify a single weight. A bin counts its weights and adds up, as integers, their
// bits below the ten bits of the level. This gives the exact sum of the bin's weights, since they
// all have the same exponent.
#pragma once

#include <cstdint>

#include "gpu/detail/half.hpp"

namespace twill::gpu::detail {

inline constexpr int bin_bits = 10, bin_levels = 3;
inline constexpr std::int32_t n_bins = 1 << bin_bits;
inline constexpr std::uint32_t weight_of_one = 0x3f800000u; ///< the bits of the largest weight

/// The lowest bit of a level's bin, of levels 1 to 3.
TWILL_KERNEL_INLINE int bin_shift(int level) {
  return bin_bits * (bin_levels - level);
}
/// The bin of a level in which a weight falls.
TWILL_KERNEL_INLINE std::int32_t bin_of(std::uint32_t bits, int level) {
  return static_cast<std::int32_t>(bits >> bin_shift(level)) & (n_bins - 1);
}
/// Whether a weight falls into the bin that begins at `edge`, found by levels up to `level`.
TWILL_KERNEL_INLINE bool in_bin(std::uint32_t bits, std::uint32_t edge, int level) {
  return ((bits ^ edge) >> bin_shift(level)) == 0;
}
/// The bits of a weight below its level's bin.
TWILL_KERNEL_INLINE std::uint32_t rest_of(std::uint32_t bits, int level) {
  return bits & ((1u << bin_shift(level)) - 1);
}

/// The sums of a row's weights by bins. // (n_bins) each
struct row_histogram {
  std::uint64_t rest[n_bins];
  std::uint32_t count[n_bins];
};
/// The sums of the weights of one part by bins. A part is short enough for 32-bit sums.
struct part_histogram {
  std::uint32_t rest[n_bins];
  std::uint32_t count[n_bins];
};

/// The sum of `count` weights of the bin that begins at `edge`, exactly.
TWILL_KERNEL_INLINE double bin_mass(std::uint32_t edge, std::uint32_t count, std::uint64_t rest) {
  const auto least = static_cast<double>(bits_to_f32(edge));
  const double step = static_cast<double>(bits_to_f32(edge | 1u)) -
                      static_cast<double>(bits_to_f32(edge & ~1u)); // of one bit
  return least * static_cast<double>(count) + step * static_cast<double>(rest);
}

/// Bits of the number of weights in a row.
TWILL_KERNEL_INLINE int bits_of_count(std::int64_t n) {
  int bits = 0;
  for (; n > 0; n >>= 1)
    ++bits;
  return bits;
}

/// The masses (sums of weights) of the bins that are chosen by a weight's first ten bits are
/// rounded down to multiples of this number, so that doubles add up the masses of n weights without
/// further rounding.
TWILL_KERNEL_INLINE double mass_quantum(std::int64_t n) {
  return bits_to_f32(static_cast<std::uint32_t>(127 - (52 - bits_of_count(n))) << 23);
}

/// Converts a weight to an integer number of small units, rounded down. The unit is chosen so that
/// 64 bits hold the sum of n weights.
struct mass_units {
  int bits; ///< of a weight of 1

  TWILL_KERNEL_MEMBER explicit mass_units(std::int64_t n) : bits(63 - bits_of_count(n)) {}
  TWILL_KERNEL_MEMBER std::uint64_t operator()(std::uint32_t weight) const {
    const int exponent = static_cast<int>(weight >> 23);
    const std::uint64_t mantissa = weight & 0x7fffffu;
    const std::uint64_t digits = exponent > 0 ? mantissa | 0x800000u : mantissa;
    const int shift = (exponent > 0 ? exponent : 1) - 150 + bits;
    if (shift >= 0) return digits << shift;
    return shift > -24 ? digits >> -shift : 0;
  }
};

} // namespace twill::gpu::detail
