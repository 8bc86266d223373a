// Which body multiplies how many rows, and in which shape: arithmetic of the host. All have the
// same bits, so only time depends on it.
#pragma once

#include <cstdint>

namespace twill::gpu::cuda {

enum class gemm_form : std::uint8_t { decode, prefill_small, prefill_large };

/// What a block of prefill_gemm.hpp multiplies.
struct prefill_block {
  std::int64_t outputs, rows;

  std::int64_t count(std::int64_t n_outputs, std::int64_t m) const {
    return (n_outputs + outputs - 1) / outputs * ((m + rows - 1) / rows);
  }
};

/// From as many rows on a product may go through prefill_gemm.hpp. One launch of gemm.hpp reads the
/// weights once for 32.
inline constexpr std::int64_t decode_rows = 32;

// What an output of a row costs in each body, relative to the larger blocks of prefill_gemm.hpp,
// where every multiprocessor is busy. Estimates for 4-bit weights on an A100, which no GPU has
// confirmed: a block of 32 rows of gemm.hpp takes 80 bytes through L2 for each cycle that its
// products take at full rate, twice what L2 delivers; the smaller blocks convert each weight for
// half as many rows.
inline constexpr double decode_cost = 2;
inline constexpr double prefill_small_cost = 1.2;

/// The form that takes the least time. Blocks of prefill_gemm.hpp run one at a time on each
/// multiprocessor, so their last wave may leave most of them idle; those of gemm.hpp are many and
/// small.
inline gemm_form plan_gemm(std::int64_t n_outputs, std::int64_t m, std::int64_t multiprocessors,
                           const prefill_block& small, const prefill_block& large) {
  if (m <= decode_rows) return gemm_form::decode;
  const auto waves = [&](const prefill_block& block) {
    const std::int64_t n = (block.count(n_outputs, m) + multiprocessors - 1) / multiprocessors;
    return static_cast<double>(n * multiprocessors * block.outputs * block.rows);
  };
  const std::int64_t decoded = (m + decode_rows - 1) / decode_rows * decode_rows * n_outputs;
  const double by_decode = decode_cost * static_cast<double>(decoded);
  const double by_small = prefill_small_cost * waves(small), by_large = waves(large);
  if (by_decode <= by_small && by_decode <= by_large) return gemm_form::decode;
  return by_small < by_large ? gemm_form::prefill_small : gemm_form::prefill_large;
}

} // namespace twill::gpu::cuda
