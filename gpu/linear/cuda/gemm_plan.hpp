// Which body multiplies how many rows, and in which shape: arithmetic of the host. All have the
// same bits, so only time depends on it.
#pragma once

#include <cstdint>

namespace twill::gpu::cuda {

enum class gemm_form : std::uint8_t { decode, prefill_small, prefill_large };

/// A shape of the blocks of prefill_gemm.hpp.
struct prefill_block {
  std::int64_t outputs, rows;
  /// What an output of a row costs, relative to the larger shape for the same weights, where every
  /// multiprocessor is busy.
  double cost;

  std::int64_t count(std::int64_t n_outputs, std::int64_t m) const {
    return (n_outputs + outputs - 1) / outputs * ((m + rows - 1) / rows);
  }
};

/// A product of more rows may go through prefill_gemm.hpp. One launch of gemm.hpp reads the weights
/// once for each 32 rows.
inline constexpr std::int64_t decode_rows = 32;

/// The cost of gemm.hpp, for 32 rows. An estimate: its blocks take 48 to 128 bytes through the L2
/// cache for each cycle that an A100 multiplies them at full rate, and L2 delivers 35. The costs of
/// smaller blocks are the instructions that tools/check-cuda counts, or the tensor cores where
/// those take longer. No GPU has confirmed any of them.
inline constexpr double decode_cost = 2;

/// The form that takes the least time. One block of prefill_gemm.hpp at a time is counted on each
/// multiprocessor, so the last wave may leave most of them idle; the blocks of gemm.hpp are many
/// and small.
inline gemm_form plan_gemm(std::int64_t n_outputs, std::int64_t m, std::int64_t multiprocessors,
                           const prefill_block& small, const prefill_block& large) {
  if (m <= decode_rows) return gemm_form::decode;
  const auto waves = [&](const prefill_block& block) {
    const std::int64_t n = (block.count(n_outputs, m) + multiprocessors - 1) / multiprocessors;
    return block.cost * static_cast<double>(n * multiprocessors * block.outputs * block.rows);
  };
  const std::int64_t decoded = (m + decode_rows - 1) / decode_rows * decode_rows * n_outputs;
  const double by_decode = decode_cost * static_cast<double>(decoded);
  const double by_small = waves(small), by_large = waves(large);
  if (by_decode <= by_small && by_decode <= by_large) return gemm_form::decode;
  return by_small < by_large ? gemm_form::prefill_small : gemm_form::prefill_large;
}

} // namespace twill::gpu::cuda
