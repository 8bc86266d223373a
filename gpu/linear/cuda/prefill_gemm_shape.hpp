// The sizes of a block of prefill_gemm.hpp, and the layout of its shared memory.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gpu/cuda/ptx.hpp"
#include "gpu/detail/packed_view.hpp"
#include "gpu/linear/cuda/gemm.hpp"

namespace twill::gpu::cuda {

inline constexpr int prefill_small_tiles = 4; ///< `Tiles` of the smaller shape, for any weights

/// The shape of a block: eight warps of 8 * Tiles rows each. `RowWarps` of the warps share a pair
/// of row panels (32 outputs) and have different rows.
template <class Weights, int Tiles, int RowWarps>
struct prefill_gemm_shape {
  using weights = Weights;
  static constexpr int tiles = Tiles; ///< tiles of rows per warp
  static constexpr int warps = 8;
  static constexpr int threads = 32 * warps;
  static constexpr int pairs = warps / RowWarps;
  static constexpr int warp_rows = gemm_tile * Tiles;
  static constexpr int rows = warp_rows * RowWarps;
  static constexpr int outputs = gemm_outputs * pairs;
  /// Slots of shared memory for steps: one slot is read while the other slots are being filled.
  static constexpr int slots = 4;
  static_assert(slots % Weights::segment_steps == 0);
  /// Whether the totals of the slices so far lie in registers.
  static constexpr bool totals_in_registers = std::is_empty_v<typename Weights::part>;

  static constexpr int row_bytes =
      gemm_step * Weights::x_bytes; ///< of one row's activations in a step
  static constexpr int x_bytes = rows * row_bytes;
  static constexpr unsigned x_at = pairs * slots * Weights::step_bytes;
  /// For int8 activations: bytes of the x_params (scale and code sum) of one segment, the steps
  /// that share a scale: 8 bytes per row. Shared memory holds the x_params of as many segments as
  /// it holds steps, which is enough for any number of steps per segment.
  static constexpr int params_bytes = Weights::x_bytes == 1 ? rows * 8 : 0;
  static constexpr unsigned params_at = x_at + slots * x_bytes;
  static constexpr unsigned slots_end = params_at + slots * params_bytes;
  static constexpr int total_bytes = threads * Tiles * 2 * 16;
  /// Offset in shared memory of the totals, which are the sums over all slices of the columns so
  /// far. Totals that lie in registers are stored only after the last step, in the memory through
  /// which operands were copied.
  static constexpr unsigned totals_at = totals_in_registers ? 0 : slots_end;
  static constexpr int shared_bytes =
      static_cast<int>(slots_end) + (totals_in_registers ? 0 : total_bytes);
  static_assert(total_bytes <= shared_bytes && Tiles % 2 == 0);

  /// The pair of panels and the group of rows that a thread's warp multiplies.
  TWILL_KERNEL_MEMBER static int pair_of(int thread) { return thread / 32 % pairs; }
  TWILL_KERNEL_MEMBER static int row_warp_of(int thread) { return thread / 32 / pairs; }
  /// Offset in shared memory of a thread's four totals (sums over all columns so far) of tile
  /// `tile` of rows and tile `i` of outputs.
  TWILL_KERNEL_MEMBER static unsigned total_at(int thread, int tile, int i) {
    return totals_at + static_cast<unsigned>(((tile * 2 + i) * threads + thread) * 16);
  }

  /// The number of blocks in a grid for m rows. Blocks with the same rows of weights and different
  /// groups of rows of activations have consecutive numbers.
  static std::int64_t blocks(const detail::packed_view& w, std::int64_t m) {
    return (w.rows + outputs - 1) / outputs * ((m + rows - 1) / rows);
  }
};

template <class Shape>
using prefill_sums = float[Shape::tiles][2][4]; ///< (tile of rows, tile of outputs, element of d)

} // namespace twill::gpu::cuda
