// The sizes of a block of prefill_gemm.hpp, and where in shared memory its slots and sums lie.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gpu/cuda/ptx.hpp"
#include "gpu/detail/packed_view.hpp"
#include "gpu/linear/cuda/gemm.hpp"

namespace twill::gpu::cuda {

inline constexpr int prefill_small_tiles = 4; ///< of the smaller shape, for any weights

/// The shape of a block: eight warps, of which `RowWarps` have the same pair of panels and other
/// rows, 8 * Tiles each.
template <class Weights, int Tiles, int RowWarps>
struct prefill_gemm_shape {
  using weights = Weights;
  static constexpr int tiles = Tiles; ///< of rows, of a warp
  static constexpr int warps = 8;
  static constexpr int threads = 32 * warps;
  static constexpr int pairs = warps / RowWarps;
  static constexpr int warp_rows = gemm_tile * Tiles;
  static constexpr int rows = warp_rows * RowWarps;
  static constexpr int outputs = gemm_outputs * pairs;
  /// Slots of shared memory for steps: one is read while the others are copied to.
  static constexpr int slots = 4;
  static_assert(slots % Weights::segment_steps == 0);
  /// Whether the sums of the slices so far lie in registers.
  static constexpr bool totals_in_registers = std::is_empty_v<typename Weights::part>;

  static constexpr int row_bytes = gemm_step * Weights::x_bytes; ///< of a step's activations
  static constexpr int x_bytes = rows * row_bytes;
  static constexpr unsigned x_at = pairs * slots * Weights::step_bytes;
  /// x_params of a segment, where activations are int8: 8 bytes a row. They have slots of their
  /// own, as many as steps have, which is enough for any number of steps a segment.
  static constexpr int params_bytes = Weights::x_bytes == 1 ? rows * 8 : 0;
  static constexpr unsigned params_at = x_at + slots * x_bytes;
  static constexpr unsigned slots_end = params_at + slots * params_bytes;
  static constexpr int total_bytes = threads * Tiles * 2 * 16;
  /// Sums that lie in registers are stored only when nothing else is needed there.
  static constexpr unsigned totals_at = totals_in_registers ? 0 : slots_end;
  static constexpr int shared_bytes =
      static_cast<int>(slots_end) + (totals_in_registers ? 0 : total_bytes);
  static_assert(total_bytes <= shared_bytes && Tiles % 2 == 0);

  /// What a thread's warp has: a pair of panels, and one of the warps' groups of rows.
  TWILL_KERNEL_MEMBER static int pair_of(int thread) { return thread / 32 % pairs; }
  TWILL_KERNEL_MEMBER static int row_warp_of(int thread) { return thread / 32 / pairs; }
  /// Where a thread keeps four sums of the slices so far: of a tile of rows and one of outputs.
  TWILL_KERNEL_MEMBER static unsigned total_at(int thread, int tile, int i) {
    return totals_at + static_cast<unsigned>(((tile * 2 + i) * threads + thread) * 16);
  }

  /// Blocks of a grid for m rows: groups of rows of the same panels follow each other.
  static std::int64_t blocks(const detail::packed_view& w, std::int64_t m) {
    return (w.rows + outputs - 1) / outputs * ((m + rows - 1) / rows);
  }
};

template <class Shape>
using prefill_sums = float[Shape::tiles][2][4]; ///< (tile of rows, tile of outputs, element of d)

} // namespace twill::gpu::cuda
