// The body of a product of packed weights with rows of activations: what decoding spends most of
// its time in. It is written over Ptx (gpu/cuda/ptx.hpp): gemm_launch.hpp makes kernels of it,
// tests emulate it. `Weights` says how a kind of weights comes from memory and is multiplied:
// gemm_w4.hpp, gemm_w8.hpp, gemm_i8.hpp, gemm_16.hpp.
//
// A warp multiplies two row panels, 32 outputs, with 8 * Tiles rows, up to 32. More rows are more
// blocks, each of which reads the weights again: good for decoding, slow for prompts. Weights are
// the first operand of mma whatever the number of rows, so one row costs as many instructions as
// eight, and as little memory as the weights have. The columns are cut into slices
// of whole segments, one for each of `slices` warps of a block, which walk their slices upwards, 32
// columns a step; then the block adds the slices in their order. Where segments and slices begin
// depends on the matrix alone. So a row has the same bits alone and among any others, in every
// launch of this body.
//
// Weights are copied to shared memory some steps ahead and read once. Activations are 16 or 8 bits
// wide and come straight from the caches, one step ahead: warps of a block share none of them but
// those that multiply the same slice with other panels.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gpu/cuda/ptx.hpp"
#include "gpu/detail/packed_view.hpp"
#include "gpu/tensor.hpp"

namespace twill::gpu::cuda {

inline constexpr int gemm_slices = 8;   ///< of the columns; changing it changes bits
inline constexpr int gemm_outputs = 32; ///< of a warp
inline constexpr int gemm_tile = 8;     ///< rows of activations of one mma
inline constexpr int gemm_step = 32;    ///< columns

/// Where silu_mul() of a product goes in place of the product, if `data` is not null. The first
/// half of the matrix's rows is the gate; a half is a whole number of pairs of panels.
struct gated_output {
  void* data; // (m, rows / 2) f32, f16 or bf16
  dtype type;
  std::int64_t stride; ///< elements
};

/// Of int8 activations, for each segment of the columns: the rows' scales and sums of codes.
struct int8_row_params {
  const float* values; // (segments, rows, 2): scale, sum
  std::int64_t rows;   ///< m rounded up to a multiple of gemm_tile; those past m have any values
};

struct gemm_args {
  detail::packed_view w;
  const void* x;            // (m, cols) f16, bf16 or int8; rows begin at multiples of 16 bytes
  std::int64_t x_stride;    ///< elements
  int8_row_params x_params; ///< of int8
  int m;
  const float* bias;       // (rows), or null
  float* out;              // (m, rows)
  std::int64_t out_stride; ///< elements
  bool accumulate;         ///< adds to `out`
  gated_output gated;      ///< of prefill_gemm.hpp alone
};

/// What `Weights` is, for each lane of a warp:
///   ptx_type, step_bytes (of a warp's copies), steps_ahead, segment_steps (which divide
///   steps_ahead), sums_padding, crowded: that two blocks of 32 rows have too few registers
///   swaps_tiles: that some lanes multiply their two tiles of outputs in the other order
///   prefill_tiles, prefill_row_warps: the larger shape of prefill_gemm.hpp, as its registers and
///   shared memory have room for it; prefill_small_cost: see prefill_block
///   x_bytes    of an activation: 2, or 1 of int8, which has x_params
///   halves     mma of two tiles a step: 2 of 16 columns each, or 1 of 32
///   sixteens   the lane's columns of a step are 4 * (lane % 4) to + 3 of both its 16s, else column
///              octet lane % 4
///   sum_unit   the power of two that a sum of 1 stands for
///   (ptx, view, pair, lane, base, segment)   base: the warp's first byte of shared memory
///   copy(i, slot)                   begins to copy the weights of the i-th step from here
///   skip(steps)                     goes on to what is copied next
///   read(slot)                      what a step's copies brought, once they have landed; then the
///                                   slot may be copied to
///   fragments_of(words, k)          of half k of the step's columns, for both tiles of outputs
///   multiply(fragments, x, k, part, sum)   adds the half's products
///   begin_segment(more), end_segment(part, sum), and after that load_scales() for the next segment
///   end_segment(part, params, sum)  of int8: the x_params of both rows that the lane has of a tile
///   unswap_tiles(sum)               where swaps_tiles, puts the sums of tile i into sum[i]
///   output_of(lane, i, j)           the warp's output that row lane / 4 + 8 * j of tile i is

/// The panel of a pair that lanes 0 to 15, or 16 to 31, read where each half of a warp has one. The
/// second panel of the last pair may be absent: its outputs are not written.
TWILL_KERNEL_INLINE std::int64_t panel_of(const detail::packed_view& w, int pair, int lane) {
  const std::int64_t panel = 2 * std::int64_t{pair} + lane / 16;
  return panel < w.panels ? panel : w.panels - 1;
}

/// The shape of a block: `Tiles` tiles of rows, and `Pairs` pairs of panels, which share
/// activations in the multiprocessor's cache. A warp has one pair, and `Pairs` slices that follow
/// each other.
template <class Weights, int Tiles, int Pairs>
struct gemm_shape {
  static constexpr int warps = gemm_slices;
  static constexpr int threads = 32 * warps;
  static constexpr int rows = gemm_tile * Tiles;
  static constexpr int outputs = gemm_outputs * Pairs;
  /// Steps that a warp's copies are ahead.
  static constexpr int ahead = Weights::steps_ahead;
  static_assert(ahead % Weights::segment_steps == 0);
  static constexpr int copied_bytes = warps * ahead * Weights::step_bytes;
  /// Floats from one row of a slice's sums to the next, in shared memory.
  static constexpr int sums_pitch = gemm_outputs + Weights::sums_padding;
  static constexpr int sums_bytes = Pairs * gemm_slices * gemm_tile * sums_pitch * 4;
  static constexpr int shared_bytes = copied_bytes > sums_bytes ? copied_bytes : sums_bytes;

  /// Blocks of a grid for m rows: groups of rows of the same panels follow each other.
  static std::int64_t blocks(const detail::packed_view& w, std::int64_t m) {
    return (w.rows + outputs - 1) / outputs * ((m + rows - 1) / rows);
  }
};

template <class Weights, int Tiles, int Pairs>
struct gemm {
  using shape = gemm_shape<Weights, Tiles, Pairs>;
  static constexpr int segment_steps = Weights::segment_steps;

  typename Weights::ptx_type ptx;
  const gemm_args& args;

  /// The lane's activations of a step: eight columns.
  using columns = std::conditional_t<Weights::x_bytes == 1, words2, words4>;
  TWILL_KERNEL_MEMBER columns columns_at(const char* from) const {
    if constexpr (Weights::x_bytes == 1) {
      return ptx.load(reinterpret_cast<const words2*>(from));
    } else if constexpr (Weights::sixteens) {
      const auto low = ptx.load(reinterpret_cast<const words2*>(from));
      const auto high = ptx.load(reinterpret_cast<const words2*>(from + gemm_step / 2 * 2));
      return {{low.word[0], low.word[1], high.word[0], high.word[1]}};
    } else {
      return ptx.load(reinterpret_cast<const words4*>(from));
    }
  }

  /// The x_params of both rows that the lane has of each tile, where activations have some. Tiles
  /// that are not there have those of the last one.
  struct row_params {
    floats4 of_tile[Tiles];
  };
  struct no_params {};
  TWILL_KERNEL_MEMBER auto params_of(int first_row, int segment) const {
    if constexpr (Weights::x_bytes == 2) {
      return no_params{};
    } else {
      row_params to;
      const int rows = static_cast<int>(args.x_params.rows), last = rows - gemm_tile;
      const float* const from = args.x_params.values + std::int64_t{segment} * rows * 2;
      TWILL_UNROLL
      for (int n = 0; n < Tiles; ++n) {
        const int row = first_row + n * gemm_tile;
        to.of_tile[n] = ptx.load(reinterpret_cast<const floats4*>(
            from + ((row < last ? row : last) + ptx.thread() % 4 * 2) * 2));
      }
      return to;
    }
  }

  /// Adds the products of the warp's slices, from `slice` on, to their sums.
  TWILL_KERNEL_MEMBER void multiply(int pair, int slice, int first_row, int base,
                                    float (&sums)[Pairs][Tiles][2][4]) const {
    const int lane = ptx.thread() % 32;
    constexpr int segment_columns = gemm_step * segment_steps;
    const int segments = static_cast<int>(args.w.cols) / segment_columns;
    const int of_slice = (segments + gemm_slices - 1) / gemm_slices;
    const auto begin_of = [&](int s) { return s * of_slice < segments ? s * of_slice : segments; };
    const int begin = begin_of(slice);
    const int end = begin_of(slice + Pairs);

    // A lane has its columns of row lane / 4 of each tile. Rows that are not there are read as the
    // last one, and not written.
    using element = std::conditional_t<Weights::x_bytes == 1, std::int8_t, std::uint16_t>;
    const auto* const x_rows = reinterpret_cast<const char*>(static_cast<const element*>(args.x) +
                                                             first_row * args.x_stride);
    unsigned x_at[Tiles]; // bytes
    TWILL_UNROLL
    for (int n = 0; n < Tiles; ++n) {
      const int row = n * gemm_tile + lane / 4, last = args.m - 1 - first_row;
      x_at[n] =
          static_cast<unsigned>((row < last ? row : last) * static_cast<int>(args.x_stride) +
                                lane % 4 * (Weights::sixteens ? 4 : 8) + begin * segment_columns) *
          Weights::x_bytes;
    }
    columns x[Tiles];
    const auto load_rows = [&](int step) {
      TWILL_UNROLL
      for (int n = 0; n < Tiles; ++n)
        x[n] = columns_at(x_rows + x_at[n] + step * gemm_step * Weights::x_bytes);
    };

    Weights weights(ptx, args.w, pair, lane, base, begin);
    TWILL_UNROLL
    for (int i = 0; i < shape::ahead; ++i) {
      if (begin + i / segment_steps < end) weights.copy(i, i);
      ptx.commit();
    }
    weights.skip(shape::ahead);
    if (begin == end) {
      ptx.template wait<0>();
      return;
    }
    load_rows(0);
    int slot = 0;
    int segment = begin;
    TWILL_UNROLL
    for (int j = 0; j < Pairs; ++j) {
      float(&sum)[Tiles][2][4] = sums[j];
      const int slice_end = begin_of(slice + j + 1);
      for (; segment < slice_end; ++segment) {
        const bool more = segment + 1 < end;
        weights.begin_segment(more);
        [[maybe_unused]] const auto params = params_of(first_row, segment);
        typename Weights::part part[Tiles];
        TWILL_UNROLL_TIMES(Tiles > 2 ? 1 : segment_steps) // with more tiles registers are short
        for (int i = 0; i < segment_steps; ++i) {
          ptx.template wait<shape::ahead - 1>();
          const auto words = weights.read(slot + i);
          if (segment + shape::ahead / segment_steps < end) weights.copy(i, slot + i);
          ptx.commit();
          TWILL_UNROLL
          for (int k = 0; k < Weights::halves; ++k) {
            const auto fragments = weights.fragments_of(words, k);
            TWILL_UNROLL
            for (int n = 0; n < Tiles; ++n)
              weights.multiply(fragments, x[n], k, part[n], sum[n]);
          }
          if (i + 1 < segment_steps || more) load_rows(i + 1);
        }
        TWILL_UNROLL
        for (int n = 0; n < Tiles; ++n)
          if constexpr (Weights::x_bytes == 1)
            weights.end_segment(part[n], params.of_tile[n], sum[n]);
          else
            weights.end_segment(part[n], sum[n]);
        weights.load_scales();
        TWILL_UNROLL
        for (int n = 0; n < Tiles; ++n)
          x_at[n] += segment_columns * Weights::x_bytes;
        weights.skip(segment_steps);
        slot = slot + segment_steps == shape::ahead ? 0 : slot + segment_steps;
      }
    }
    ptx.template wait<0>();
    if constexpr (Weights::swaps_tiles) {
      TWILL_UNROLL
      for (int i = 0; i < Pairs * Tiles; ++i)
        weights.unswap_tiles(sums[i / Tiles][i % Tiles]);
    }
  }

  /// Adds up a tile's slices and writes its outputs.
  TWILL_KERNEL_MEMBER void finish(int pair, int slice, int tile, std::int64_t first_output,
                                  int first_row, const float (&sums)[Pairs][Tiles][2][4]) const {
    constexpr int pitch = shape::sums_pitch;
    const int lane = ptx.thread() % 32;
    ptx.barrier(); // shared memory has been read
    TWILL_UNROLL
    for (int s = 0; s < Pairs; ++s)
      TWILL_UNROLL
    for (int i = 0; i < 2; ++i)
      TWILL_UNROLL
    for (int j = 0; j < 4; ++j) {
      // Rows of the tile are stored as 0, 2, 4, 6, 1, 3, 5, 7, which meets no bank twice.
      const int row = j % 2 * 4 + lane % 4;
      const int at = ((pair * gemm_slices + slice + s) * gemm_tile + row) * pitch +
                     Weights::output_of(lane, i, j / 2);
      ptx.store_shared(static_cast<unsigned>(at * 4), sums[s][tile][i][j]);
    }
    ptx.barrier();
    TWILL_UNROLL
    for (int which = 0; which < Pairs; ++which) {
      const int of_pair = lane;
      const int stored = ptx.thread() / gemm_outputs;
      const int row = first_row + tile * gemm_tile + stored % 4 * 2 + stored / 4;
      const std::int64_t output = first_output + which * gemm_outputs + of_pair;
      if (row >= args.m || output >= args.w.rows) continue;
      float total = 0;
      TWILL_UNROLL
      for (int s = 0; s < gemm_slices; ++s) {
        const int at = ((which * gemm_slices + s) * gemm_tile + stored) * pitch + of_pair;
        total += ptx.template load_shared<float>(static_cast<unsigned>(at * 4));
      }
      total *= Weights::sum_unit;
      if (args.bias != nullptr) total += ptx.load(args.bias + output);
      float* to = args.out + row * args.out_stride + output;
      ptx.store(to, args.accumulate ? ptx.load(to) + total : total);
    }
  }

  TWILL_KERNEL_MEMBER void run() const {
    constexpr int warps_of_pair = gemm_slices / Pairs;
    const int groups = (args.m + shape::rows - 1) / shape::rows;
    const int first_row = ptx.block() % groups * shape::rows;
    const int of_panels = ptx.block() / groups;
    const int warp = ptx.thread() / 32;
    const int pair = warp / warps_of_pair, slice = warp % warps_of_pair * Pairs;
    float sums[Pairs][Tiles][2][4] = {};
    multiply(of_panels * Pairs + pair, slice, first_row, warp * shape::ahead * Weights::step_bytes,
             sums);
    TWILL_UNROLL
    for (int n = 0; n < Tiles; ++n)
      finish(pair, slice, n, std::int64_t{of_panels} * shape::outputs, first_row, sums);
  }
};

} // namespace twill::gpu::cuda
