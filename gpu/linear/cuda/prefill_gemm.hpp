// prefill_gemm: the body (the code) of the kernel that multiplies packed weights by many rows of
// activations, in which prompts spend most of their time. The body is a template over Ptx
// (gpu/cuda/ptx.hpp): gemm_launch.hpp instantiates it as a CUDA kernel, and tests run it on an
// emulation of a GPU. The template parameter `Weights` loads and multiplies one kind of weights;
// gemm.hpp explains its members, and what tiles, steps, segments and slices are.
//
// A block multiplies several pairs of row panels (32 outputs per pair) by several groups of rows. A
// warp has one pair and 8 * Tiles rows, and converts its weights to operands of mma once for all
// these rows. Activations and weights pass through buffers in shared memory (slots), one slot per
// step of 32 columns, and are copied three steps ahead.
//
// A row gets the same bits as from gemm.hpp: each mma has the same operands and columns, a
// segment's products are summed from its first column on, and the sums of segments and of slices
// are added in the same order. In this kernel one warp computes all slices of an output, whereas
// gemm.hpp distributes the slices over the warps of a block. So a warp needs three sums for each
// output: of the current segment, of the current slice, and of all earlier slices, the total. Dense
// weights need no sums of segments, and totals then lie in registers. Otherwise the totals lie in
// shared memory, since registers would not hold all three.
//
// For silu_mul() of a product, half of a block's warps compute pairs of panels of the gate and the
// other half the pairs that the gate multiplies. Both sums are exchanged through shared memory, so
// the product itself is never written to global memory.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gpu/cuda/ptx.hpp"
#include "gpu/detail/activation_element.hpp"
#include "gpu/detail/packed_view.hpp"
#include "gpu/linear/cuda/gemm.hpp"
#include "gpu/linear/cuda/prefill_gemm_shape.hpp"
#include "gpu/linear/cuda/prefill_outputs.hpp"

namespace twill::gpu::cuda {

template <class Weights, int Tiles, int RowWarps>
struct prefill_gemm {
  using shape = prefill_gemm_shape<Weights, Tiles, RowWarps>;
  using sums = prefill_sums<shape>;
  static constexpr int segment_steps = Weights::segment_steps;

  typename Weights::ptx_type ptx;
  const gemm_args& args;

  TWILL_KERNEL_MEMBER int lane() const { return ptx.thread() % 32; }
  TWILL_KERNEL_MEMBER int pair_of_block() const { return shape::pair_of(ptx.thread()); }
  TWILL_KERNEL_MEMBER int row_warp() const { return shape::row_warp_of(ptx.thread()); }

  /// The number of 16-byte chunks in a row of activations of one step.
  static constexpr int row_chunks = shape::row_bytes / 16;
  /// The offset of 16-byte chunk number `chunk` of a row of activations in a slot, which is the
  /// shared memory for one step of 32 columns. With rows of 64 bytes, rows 2 and 3 of every four
  /// have their halves exchanged, so that loads of 8 bytes have no bank conflicts.
  TWILL_KERNEL_MEMBER static unsigned swizzled(int row, int chunk) {
    return static_cast<unsigned>(row * shape::row_bytes +
                                 (row_chunks == 4 ? chunk ^ (row & 2) : chunk) * 16);
  }

  TWILL_KERNEL_MEMBER static int next_slot(int slot, int steps = 1) {
    static_assert((shape::slots & (shape::slots - 1)) == 0);
    return (slot + steps) & (shape::slots - 1);
  }

  /// What a thread copies of the activations in each step of 32 columns: 16 bytes of every
  /// `apart`-th row. For rows past the last, it copies the last row again; their outputs are not
  /// written.
  struct row_copies {
    static constexpr int apart = shape::threads / row_chunks;
    static constexpr int passes = (shape::rows + apart - 1) / apart;
    const char* from[passes];
    unsigned to;
    int first;
  };
  TWILL_KERNEL_MEMBER row_copies copies_of(int first_row) const {
    row_copies c;
    c.first = ptx.thread() / row_chunks;
    c.to = shape::x_at + swizzled(c.first, ptx.thread() % row_chunks);
    TWILL_UNROLL
    for (int i = 0; i < row_copies::passes; ++i) {
      const int row = first_row + c.first + i * row_copies::apart;
      c.from[i] = static_cast<const char*>(args.x) +
                  (row < args.m ? row : args.m - 1) * args.x_stride * Weights::x_bytes +
                  ptx.thread() % row_chunks * 16;
    }
    return c;
  }
  TWILL_KERNEL_MEMBER void copy_rows(const row_copies& c, int step, int slot) const {
    TWILL_UNROLL
    for (int i = 0; i < row_copies::passes; ++i)
      if (shape::rows % row_copies::apart == 0 || c.first + i * row_copies::apart < shape::rows)
        ptx.copy_async(c.to + static_cast<unsigned>(slot * shape::x_bytes +
                                                    i * row_copies::apart * shape::row_bytes),
                       c.from[i] + step * shape::row_bytes);
  }

  /// What a thread copies of args.x_params (scales and code sums of int8 activations) in each
  /// segment, the columns that share a scale: the x_params of two rows. Tiles beyond the last row
  /// get the x_params of the last tile.
  struct param_copies {
    const float* from;
    int slot;
  };
  TWILL_KERNEL_MEMBER param_copies param_copies_of(int first_row) const {
    const int tile = first_row + ptx.thread() / 4 * gemm_tile;
    const int last = static_cast<int>(args.x_params.rows) - gemm_tile;
    return {args.x_params.values + ((tile < last ? tile : last) + ptx.thread() % 4 * 2) * 2, 0};
  }
  TWILL_KERNEL_MEMBER void copy_params(param_copies& c) const {
    if (ptx.thread() < shape::rows / 2)
      ptx.copy_async(params_slot(c.slot) + static_cast<unsigned>(ptx.thread() * 16), c.from);
    c.from += 2 * args.x_params.rows;
    c.slot = next_slot(c.slot);
  }
  TWILL_KERNEL_MEMBER static unsigned params_slot(int slot) {
    return shape::params_at + static_cast<unsigned>(slot * shape::params_bytes);
  }
  /// The x_params of the two rows of a tile whose sums the lane holds.
  TWILL_KERNEL_MEMBER floats4 params_of(int slot, int tile) const {
    const int row = row_warp() * shape::warp_rows + tile * gemm_tile + lane() % 4 * 2;
    return ptx.template load_shared<floats4>(params_slot(slot) + static_cast<unsigned>(row * 8));
  }

  /// The activations that a lane multiplies in one step: eight columns of row lane / 4 of a tile.
  using columns = std::conditional_t<Weights::x_bytes == 1, words2, words4>;
  TWILL_KERNEL_MEMBER columns columns_at(int slot, int tile) const {
    const int row = row_warp() * shape::warp_rows + tile * gemm_tile + lane() / 4;
    const unsigned at = shape::x_at + static_cast<unsigned>(slot * shape::x_bytes);
    if constexpr (Weights::x_bytes == 1) {
      return ptx.template load_shared<words2>(at + swizzled(row, 0) +
                                              static_cast<unsigned>(lane() % 4 * 8));
    } else if constexpr (Weights::sixteens) {
      const unsigned half = lane() % 2 * 8;
      const auto low = ptx.template load_shared<words2>(at + swizzled(row, lane() % 4 / 2) + half);
      const auto high =
          ptx.template load_shared<words2>(at + swizzled(row, 2 + lane() % 4 / 2) + half);
      return {{low.word[0], low.word[1], high.word[0], high.word[1]}};
    } else {
      return ptx.template load_shared<words4>(at + swizzled(row, lane() % 4));
    }
  }

  /// Adds the products of a step (32 columns) to the sums. The loop over `first` loads the
  /// activations of four tiles of rows at a time, which is enough to keep the tensor cores busy.
  TWILL_KERNEL_MEMBER void multiply_step(Weights& weights, int slot,
                                         typename Weights::part (&part)[Tiles], sums& sum) const {
    constexpr int halves = Weights::halves;
    const auto words = weights.read(slot);
    typename Weights::fragments fragments[halves];
    TWILL_UNROLL
    for (int k = 0; k < halves; ++k)
      fragments[k] = weights.fragments_of(words, k);
    TWILL_UNROLL
    for (int first = 0; first < Tiles; first += 4) {
      constexpr int most = Tiles < 4 ? Tiles : 4;
      columns x[most];
      TWILL_UNROLL
      for (int n = 0; n < most; ++n)
        if (first + n < Tiles) x[n] = columns_at(slot, first + n);
      TWILL_UNROLL
      for (int k = 0; k < halves; ++k)
        TWILL_UNROLL
      for (int n = 0; n < most; ++n)
        if (first + n < Tiles)
          weights.multiply(fragments[k], x[n], k, part[first + n], sum[first + n]);
    }
  }

  /// Adds a slice's sums to the totals of the slices before it.
  TWILL_KERNEL_MEMBER void add_slice(bool is_first, const sums& sum, sums& totals) const {
    TWILL_UNROLL
    for (int n = 0; n < Tiles; ++n)
      TWILL_UNROLL
    for (int i = 0; i < 2; ++i) {
      floats4 total{};
      if constexpr (shape::totals_in_registers) {
        TWILL_UNROLL
        for (int j = 0; j < 4; ++j)
          totals[n][i][j] += sum[n][i][j];
      } else {
        if (!is_first)
          total = ptx.template load_shared<floats4>(shape::total_at(ptx.thread(), n, i));
        TWILL_UNROLL
        for (int j = 0; j < 4; ++j)
          total.value[j] += sum[n][i][j];
        ptx.store_shared(shape::total_at(ptx.thread(), n, i), total);
      }
    }
  }

  TWILL_KERNEL_MEMBER void multiply(int pair, int first_row, sums& totals) const {
    constexpr int segment_columns = gemm_step * segment_steps;
    const int segments = static_cast<int>(args.w.cols) / segment_columns;
    const int of_slice = (segments + gemm_slices - 1) / gemm_slices;
    const int steps = segments * segment_steps;
    const row_copies rows = copies_of(first_row);
    param_copies params{};
    if constexpr (Weights::x_bytes == 1) params = param_copies_of(first_row);
    Weights weights(ptx, args.w, pair, lane(), pair_of_block() * shape::slots * Weights::step_bytes,
                    0);
    // Warps that share weights take turns in copying them.
    const auto copy = [&](int of_weights, int step, int slot) {
      if (step < steps) {
        if (RowWarps == 1 || step % RowWarps == row_warp()) weights.copy(of_weights, slot);
        copy_rows(rows, step, slot);
        if constexpr (Weights::x_bytes == 1)
          if (step % segment_steps == 0) copy_params(params);
      }
      ptx.commit();
    };
    TWILL_UNROLL
    for (int i = 0; i < shape::slots - 1; ++i)
      copy(i, i, i);
    weights.skip(shape::slots - 1);
    int slot = 0, segment_slot = 0; // slots of the step and of the segment's x_params
    for (int begin = 0; begin < segments; begin += of_slice) {
      const int end = begin + of_slice < segments ? begin + of_slice : segments;
      sums sum = {};
      for (int segment = begin; segment < end; ++segment) {
        weights.begin_segment(segment + 1 < segments);
        typename Weights::part part[Tiles];
        TWILL_UNROLL
        for (int i = 0; i < segment_steps; ++i) {
          ptx.template wait<shape::slots - 2>();
          ptx.barrier(); // the step's copies are complete, and all warps have read the step before
          copy(i, segment * segment_steps + i + shape::slots - 1,
               next_slot(slot, i + shape::slots - 1));
          multiply_step(weights, slot + i, part, sum);
        }
        TWILL_UNROLL
        for (int n = 0; n < Tiles; ++n)
          if constexpr (Weights::x_bytes == 1)
            weights.end_segment(part[n], params_of(segment_slot, n), sum[n]);
          else
            weights.end_segment(part[n], sum[n]);
        weights.load_scales();
        weights.skip(segment_steps);
        slot = next_slot(slot, segment_steps);
        segment_slot = next_slot(segment_slot);
      }
      add_slice(begin == 0, sum, totals);
    }
    ptx.template wait<0>();
    static_assert(shape::totals_in_registers || !Weights::swaps_tiles);
    if constexpr (Weights::swaps_tiles) {
      TWILL_UNROLL
      for (int n = 0; n < Tiles; ++n)
        weights.unswap_tiles(totals[n]);
    }
  }

  /// Copies totals that lie in registers to shared memory, where other warps can read them.
  TWILL_KERNEL_MEMBER void share(const sums& totals) const {
    if constexpr (shape::totals_in_registers) {
      ptx.barrier(); // all warps have read the slots, whose memory is reused now
      TWILL_UNROLL
      for (int n = 0; n < Tiles; ++n)
        TWILL_UNROLL
      for (int i = 0; i < 2; ++i)
        ptx.store_shared(
            shape::total_at(ptx.thread(), n, i),
            floats4{{totals[n][i][0], totals[n][i][1], totals[n][i][2], totals[n][i][3]}});
    }
    ptx.barrier();
  }

  TWILL_KERNEL_MEMBER void run() const {
    const int groups = (args.m + shape::rows - 1) / shape::rows;
    const int first_row = ptx.block() % groups * shape::rows;
    const int of_panels = ptx.block() / groups;
    const int warp_row = first_row + row_warp() * shape::warp_rows;
    const bool gated = args.gated.data != nullptr;
    constexpr int half = shape::pairs / 2;
    int pair = of_panels * shape::pairs + pair_of_block(), first_of_half = 0;
    if (gated) {
      pair = of_panels * half + pair_of_block() % half;
      first_of_half = pair_of_block() / half * static_cast<int>(args.w.rows / 2 / gemm_outputs);
    }
    sums totals = {};
    multiply(first_of_half + pair, first_row, totals);
    const std::int64_t first_output = std::int64_t{pair} * gemm_outputs;
    const prefill_outputs<shape> outputs{ptx, args, first_output, warp_row};
    if (!gated) return outputs.write(totals);
    share(totals);
    detail::with_activation_element(
        args.gated.type, [&](auto element) { outputs.template write_gated<decltype(element)>(); });
  }
};

} // namespace twill::gpu::cuda
