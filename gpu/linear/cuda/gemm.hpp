// gemm: the body (the code) of the kernel that multiplies packed weights by a few rows of
// activations, in which decoding spends most of its time. The body is a template over Ptx
// (gpu/cuda/ptx.hpp): gemm_launch.hpp instantiates it as a CUDA kernel, and tests run it on an
// emulation of a GPU. The template parameter `Weights` loads and multiplies one kind of weights:
// see gemm_w4.hpp, gemm_w8.hpp, gemm_i8.hpp and gemm_16.hpp.
//
// A warp multiplies a pair of row panels (packed_view.hpp), which are two tiles of 16 outputs, by
// `Tiles` tiles of 8 rows of activations, at most 32 rows. More rows take more blocks, each of
// which reads the weights again; this is good for decoding but slow for prompts. Weights are always
// the first operand of mma, so one row costs as many instructions as eight. A step multiplies 32
// columns. A segment is a run of steps after which sums are scaled (segment_params.hpp). The
// columns are cut into gemm_slices slices of whole segments, which are distributed over the warps
// of a block. A warp goes through its slices from the first column on; then the block adds the sums
// of the slices in order. Where segments and slices begin depends on the matrix alone. So a row has
// the same bits alone and together with any other rows, in every shape in which this body is
// launched.
//
// Weights are copied to shared memory several steps ahead and read from there once. Activations are
// 16 or 8 bits wide and are loaded into registers one step ahead, without shared memory: only warps
// that multiply the same slice by other panels need the same activations.
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

/// If `data` is not null, silu_mul() of the product is written to it and the product itself is not
/// written. The first half of the matrix's rows is the gate; each half must be a whole number of
/// pairs of row panels, that is, of 32 rows.
struct gated_output {
  void* data; // (m, rows / 2) f32, f16 or bf16
  dtype type;
  std::int64_t stride; ///< elements
};

/// The parameters of int8 activations: for each row and each segment (columns that share a scale,
/// gemm_i8.hpp), the scale of the codes and the sum of the codes.
struct int8_row_params {
  const float* values; // (segments, rows, 2): scale, sum
  std::int64_t
      rows; ///< m rounded up to a multiple of gemm_tile; values of rows past m are unspecified
};

struct gemm_args {
  detail::packed_view w;
  const void* x;            // (m, cols) f16, bf16 or int8; rows begin at multiples of 16 bytes
  std::int64_t x_stride;    ///< elements
  int8_row_params x_params; ///< for int8 only
  int m;
  const float* bias;       // (rows), or null
  float* out;              // (m, rows)
  std::int64_t out_stride; ///< elements
  bool accumulate;         ///< adds to `out`
  gated_output gated;      ///< supported by prefill_gemm.hpp only
};

/// The members of `Weights`, of which each lane (thread) of a warp has an object. The top of this
/// file explains steps, segments, slices and pairs of panels. Constants and types:
///   ptx_type           the Ptx that the struct is instantiated with
///   step_bytes         bytes that a warp copies per step
///   steps_ahead        how many steps ahead a warp copies weights
///   segment_steps      steps of a segment; divides steps_ahead
///   sums_padding       floats of padding per row of sums in shared memory
///   crowded            whether two blocks of 32 rows would have too few registers
///   swaps_tiles        whether some lanes multiply their two tiles of outputs in the other order
///   prefill_tiles, prefill_row_warps
///                      the larger shape of prefill_gemm.hpp, limited by registers and shared
///                      memory
///   prefill_small_cost the cost of the smaller shape: see prefill_block in gemm_plan.hpp
///   x_bytes            bytes of an activation: 2, or 1 for int8, whose scales and sums of codes
///                      are in gemm_args::x_params
///   halves             mma instructions per step and tile: 2 of 16 columns each, or 1 of 32
///   sixteens           true: a lane's columns of a step are the four from 4 * (lane % 4) on in the
///                      first 16 and in the second 16; false: they are column octet lane % 4
///   sum_unit           the power of two by which sums are multiplied at the end
/// Functions:
///   Weights(ptx, view, pair, lane, base, segment)
///                      starts at a segment; base is the warp's first byte of shared memory
///   copy(i, slot)      begins to copy the weights of the i-th step from the current one
///   skip(steps)        moves the current step forward
///   read(slot)         reads a step's weights once their copies are complete; afterwards the slot
///                      may be copied to again
///   fragments_of(words, k)
///                      the mma operands of half k of the step's columns, for both tiles of outputs
///   multiply(fragments, x, k, part, sum)
///                      adds the products of half k to `part`, the segment's sums; where weights
///                      have no scales, to `sum`, the slice's sums
///   begin_segment(more)
///                      begins a segment; `more` says whether another one follows
///   end_segment(part, sum)
///                      adds the segment's sums to those of the slice
///   end_segment(part, params, sum)
///                      does so for int8; params are the scales and sums of codes (x_params) of
///                      the lane's two rows of a tile
///   load_scales()      is called after end_segment() and loads the next segment's scales
///   unswap_tiles(sum)  puts the sums of tile i into sum[i]; only where swaps_tiles is set
///   output_of(lane, i, j)
///                      the warp's output that is row lane / 4 + 8 * j of tile i

/// The row panel (16 rows of the matrix) that a thread of a warp reads, for kinds of weights where
/// threads (lanes) 0 to 15 read the first panel of a pair and lanes 16 to 31 the second. Where the
/// last pair has no second panel, they read the last panel again; the outputs that they compute are
/// not written.
TWILL_KERNEL_INLINE std::int64_t panel_of(const detail::packed_view& w, int pair, int lane) {
  const std::int64_t panel = 2 * std::int64_t{pair} + lane / 16;
  return panel < w.panels ? panel : w.panels - 1;
}

/// The shape of a block: `Tiles` tiles of 8 rows and `Pairs` pairs of row panels (32 outputs each),
/// which share the activations in the multiprocessor's L1 cache. A warp multiplies one pair of
/// panels over `Pairs` consecutive slices of the columns.
template <class Weights, int Tiles, int Pairs>
struct gemm_shape {
  static constexpr int warps = gemm_slices;
  static constexpr int threads = 32 * warps;
  static constexpr int rows = gemm_tile * Tiles;
  static constexpr int outputs = gemm_outputs * Pairs;
  /// How many steps ahead a warp copies weights.
  static constexpr int ahead = Weights::steps_ahead;
  static_assert(ahead % Weights::segment_steps == 0);
  static constexpr int copied_bytes = warps * ahead * Weights::step_bytes;
  /// Floats from one row of a slice's sums in shared memory to the next row.
  static constexpr int sums_pitch = gemm_outputs + Weights::sums_padding;
  static constexpr int sums_bytes = Pairs * gemm_slices * gemm_tile * sums_pitch * 4;
  static constexpr int shared_bytes = copied_bytes > sums_bytes ? copied_bytes : sums_bytes;

  /// The number of blocks in a grid for m rows. Blocks with the same rows of weights and different
  /// groups of rows of activations have consecutive numbers.
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

  /// The activations of one row that a lane multiplies in one step: eight columns.
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

  /// For int8 activations: the x_params (scale and sum of the codes) of the two rows of each tile
  /// whose sums the thread holds. Tiles beyond the last row get the x_params of the last tile.
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

  /// Multiplies the `Pairs` slices of columns that the warp computes (see the top of this file),
  /// the first of which is `slice`, and adds the products of each slice to its element of `sums`.
  TWILL_KERNEL_MEMBER void multiply(int pair, int slice, int first_row, int base,
                                    float (&sums)[Pairs][Tiles][2][4]) const {
    const int lane = ptx.thread() % 32;
    constexpr int segment_columns = gemm_step * segment_steps;
    const int segments = static_cast<int>(args.w.cols) / segment_columns;
    const int of_slice = (segments + gemm_slices - 1) / gemm_slices;
    const auto begin_of = [&](int s) { return s * of_slice < segments ? s * of_slice : segments; };
    const int begin = begin_of(slice);
    const int end = begin_of(slice + Pairs);

    // A thread (lane) of a warp loads its columns of row lane / 4 of each tile of 8 rows. For rows
    // past the last, it loads the last row again; their outputs are not written.
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
        TWILL_UNROLL_TIMES(
            Tiles > 2 ? 1
                      : segment_steps) // full unrolling with more tiles takes too many registers
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

  /// Adds up the slices' sums of one tile of rows and writes its outputs.
  TWILL_KERNEL_MEMBER void finish(int pair, int slice, int tile, std::int64_t first_output,
                                  int first_row, const float (&sums)[Pairs][Tiles][2][4]) const {
    constexpr int pitch = shape::sums_pitch;
    const int lane = ptx.thread() % 32;
    ptx.barrier(); // all warps have read shared memory, which is now reused
    TWILL_UNROLL
    for (int s = 0; s < Pairs; ++s)
      TWILL_UNROLL
    for (int i = 0; i < 2; ++i)
      TWILL_UNROLL
    for (int j = 0; j < 4; ++j) {
      // The 8 rows of activations of a tile are stored in the order 0, 2, 4, 6, 1, 3, 5, 7, which
      // avoids bank conflicts.
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
