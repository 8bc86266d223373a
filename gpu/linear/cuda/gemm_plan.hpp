// Chooses which kernel (gemm.hpp or prefill_gemm.hpp) multiplies a given number of rows, and in
// which block shape. All choices give the same bits, so the choice affects time only. Host code
// without CUDA calls.
#pragma once

#include <cstdint>

namespace twill::gpu::cuda {

enum class gemm_form : std::uint8_t { decode, prefill_small, prefill_large };

/// A shape of the blocks of prefill_gemm.hpp.
struct prefill_block {
  std::int64_t outputs, rows;
  /// The time per output and row of a block of this shape when every multiprocessor is busy,
  /// divided by the time of the larger block shape for the same weights.
  double cost;

  std::int64_t count(std::int64_t n_outputs, std::int64_t m) const {
    return (n_outputs + outputs - 1) / outputs * ((m + rows - 1) / rows);
  }
};

/// Products of more rows than this may use prefill_gemm.hpp. gemm.hpp reads the weights once for
/// every 32 rows.
inline constexpr std::int64_t decode_rows = 32;

/// The cost of gemm.hpp with 32 rows, in the units of prefill_block::cost. It is an estimate: on an
/// A100 at full arithmetic rate the blocks of gemm.hpp would need 48 to 128 bytes per cycle from
/// the L2 cache, which delivers 35. The costs of the smaller blocks (prefill_small_cost of each
/// `Weights`) are estimated from the instruction counts of tools/check-cuda, or from the time on
/// the tensor cores where that is longer. No GPU has confirmed these costs.
inline constexpr double decode_cost = 2;

/// Returns the kernel and block shape with the least estimated time. For prefill_gemm.hpp the
/// estimate assumes one block at a time on each multiprocessor and counts whole waves of blocks,
/// since most multiprocessors may be idle in the last wave. For gemm.hpp it ignores waves, since
/// its blocks are many and small.
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
