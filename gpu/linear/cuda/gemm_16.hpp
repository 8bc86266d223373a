// The `Weights` of gemm.hpp for dense f16 and bf16 weights. They are multiplied without conversion,
// by the mma instruction of their type.
//
// As in gemm_w4.hpp, the 32 columns of a step are multiplied in an order in which each thread of a
// warp loads eight neighbouring columns (an octet) of the activations: the four pairs of columns of
// octet t take the places of columns 2t, 2t + 1 and 2t + 8, 2t + 9 in each of the step's two mma.
// Dense weights have no scales, so mma accumulates products over all columns that a warp adds up in
// one run (a slice, see gemm.hpp).
#pragma once

#include <cstdint>

#include "gpu/cuda/ptx.hpp"
#include "gpu/detail/packed_view.hpp"
#include "gpu/linear/cuda/gemm.hpp"

namespace twill::gpu::cuda {

/// A row panel (16 outputs) of f16 weights is stored column by column. The threads of a warp copy
/// the weights to shared memory together, so that each matrix of 8 columns by 8 outputs becomes
/// contiguous; ldmatrix transposes these matrices when it loads them.
template <class Ptx>
struct gemm_f16_weights {
  static constexpr int x_bytes = 2, halves = 2;
  using ptx_type = Ptx;
  static constexpr int segment_steps = 1;
  static constexpr int step_bytes = 2048;
  static constexpr int steps_ahead = 3;
  static constexpr int sums_padding = 8;
  static constexpr bool crowded = false;
  static constexpr bool swaps_tiles = false;
  static constexpr int prefill_tiles = 8;
  static constexpr int prefill_row_warps = 2;
  static constexpr double prefill_small_cost = 1.05;
  static constexpr bool sixteens = false;
  static constexpr float sum_unit = 1;

  Ptx ptx;
  const unsigned char* codes[2]; ///< source of the lane's next copies, in both panels
  unsigned to[2]; ///< destination of the lane's copies: columns 0 to 15 and 16 to 31 of a panel
  unsigned from;  ///< address of the lane's row in the first four matrices

  TWILL_KERNEL_MEMBER gemm_f16_weights(Ptx p, const detail::packed_view& w, int pair, int lane,
                                       int base, int segment)
      : ptx(p), from(static_cast<unsigned>(base + lane * 16)) {
    TWILL_UNROLL
    for (int i = 0; i < 2; ++i) {
      std::int64_t panel = 2 * std::int64_t{pair} + i;
      if (panel >= w.panels)
        panel = w.panels - 1; // the outputs computed from this copy are not written
      codes[i] = w.codes + panel * w.codes_stride + lane * 16 + std::int64_t{segment} * 1024;
    }
    TWILL_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int column = 16 * i + lane / 2;
      const int matrix = column % 8 / 2 * 2 + lane % 2; // one of a panel's eight matrices
      to[i] = static_cast<unsigned>(base + matrix * 128 + (column / 8 * 2 + column % 2) * 16);
    }
  }

  TWILL_KERNEL_MEMBER static constexpr int output_of(int lane, int i, int j) {
    return 16 * i + 8 * j + lane / 4;
  }

  TWILL_KERNEL_MEMBER void copy(int step, int slot) const {
    TWILL_UNROLL
    for (int i = 0; i < 2; ++i)
      TWILL_UNROLL
    for (int half = 0; half < 2; ++half)
      ptx.copy_async(to[half] + static_cast<unsigned>(slot * step_bytes + i * 1024),
                     codes[i] + step * 1024 + half * 512);
  }
  TWILL_KERNEL_MEMBER void skip(int steps) {
    TWILL_UNROLL
    for (int i = 0; i < 2; ++i)
      codes[i] += steps * 1024;
  }

  struct fragments {
    std::uint32_t a[2][4]; ///< (tile, register)
  };
  struct words {
    fragments half[2];
  };

  TWILL_KERNEL_MEMBER words read(int slot) const {
    words to;
    ptx.sync_warp(); // the other lanes' copies have landed, too
    TWILL_UNROLL
    for (int k = 0; k < 2; ++k)
      TWILL_UNROLL
    for (int i = 0; i < 2; ++i)
      ptx.template load_matrices<true>(
          to.half[k].a[i], from + static_cast<unsigned>(slot * step_bytes + i * 1024 + k * 512));
    ptx.sync_warp(); // all lanes have read
    return to;
  }

  TWILL_KERNEL_MEMBER const fragments& fragments_of(const words& w, int k) const {
    return w.half[k];
  }

  struct part {};

  TWILL_KERNEL_MEMBER void multiply(const fragments& f, const words4& x, int k, part&,
                                    float (&sum)[2][4]) const {
    TWILL_UNROLL
    for (int i = 0; i < 2; ++i)
      ptx.mma_f16(sum[i], f.a[i], {x.word[2 * k], x.word[2 * k + 1]});
  }

  TWILL_KERNEL_MEMBER void begin_segment(bool) {}
  TWILL_KERNEL_MEMBER void end_segment(const part&, float (&)[2][4]) const {}
  TWILL_KERNEL_MEMBER void load_scales() {}
};

/// bf16 weights are stored in pairs of columns, each of which is a register operand of mma without
/// conversion. A thread (lane) copies and reads the four pairs of octet lane % 4 (8 columns) for
/// four outputs: those from 4 * (lane / 4) on, as in gemm_w4.hpp. It reads two outputs per load, so
/// that two loads fill the four registers of a tile of outputs; the registers of a single load of
/// 16 bytes would first have to be moved. Half of the threads read the two tiles in the opposite
/// order, since the 8-byte loads would otherwise have bank conflicts.
template <class Ptx>
struct gemm_bf16_weights {
  static constexpr int x_bytes = 2, halves = 2;
  using ptx_type = Ptx;
  static constexpr int segment_steps = 1;
  static constexpr int step_bytes = 2048;
  static constexpr int steps_ahead = 3;
  static constexpr int sums_padding = 1;
  static constexpr bool crowded = false;
  static constexpr bool swaps_tiles = true;
  static constexpr int prefill_tiles = 8;
  static constexpr int prefill_row_warps = 2;
  static constexpr double prefill_small_cost = 1.05;
  static constexpr bool sixteens = false;
  static constexpr float sum_unit = 1;

  Ptx ptx;
  const unsigned char* codes; ///< source of the lane's next copy
  unsigned base;              ///< address of the lane's bytes in slot 0
  unsigned first, second; ///< addresses of the outputs that the lane multiplies as tiles 0 and 1
  bool exchanged; ///< whether tile 0 has the lane's outputs 2 and 3, and tile 1 its outputs 0 and 1

  TWILL_KERNEL_MEMBER gemm_bf16_weights(Ptx p, const detail::packed_view& w, int pair, int lane,
                                        int warp_base, int segment)
      : ptx(p), base(static_cast<unsigned>(warp_base + lane * 16)), exchanged(lane / 8 % 2 == 1) {
    first = base + (exchanged ? 8 : 0);
    second = base + (exchanged ? 0 : 8);
    codes = w.codes + panel_of(w, pair, lane) * w.codes_stride + lane % 4 * 256 +
            lane / 4 % 4 * 16 + std::int64_t{segment} * 1024;
  }

  TWILL_KERNEL_MEMBER static constexpr int output_of(int lane, int i, int j) {
    return lane / 4 * 4 + 2 * i + j;
  }

  TWILL_KERNEL_MEMBER void copy(int step, int slot) const {
    TWILL_UNROLL
    for (int i = 0; i < 4; ++i)
      ptx.copy_async(base + static_cast<unsigned>(slot * step_bytes + i * 512),
                     codes + step * 1024 + i * 64);
  }
  TWILL_KERNEL_MEMBER void skip(int steps) { codes += steps * 1024; }

  struct words {
    words2 pair[4][2]; ///< (pair of columns, tile of outputs)
  };

  TWILL_KERNEL_MEMBER words read(int slot) const {
    words to;
    TWILL_UNROLL
    for (int i = 0; i < 8; ++i)
      to.pair[i / 2][i % 2] = ptx.template load_shared<words2>(
          (i % 2 == 0 ? first : second) + static_cast<unsigned>(slot * step_bytes + i / 2 * 512));
    return to;
  }

  struct fragments {
    std::uint32_t a[2][4]; ///< (tile, register)
  };

  TWILL_KERNEL_MEMBER fragments fragments_of(const words& w, int k) const {
    fragments to;
    TWILL_UNROLL
    for (int r = 0; r < 8; ++r)
      to.a[r / 4][r % 4] = w.pair[2 * k + r % 4 / 2][r / 4].word[r % 2];
    return to;
  }

  struct part {};

  TWILL_KERNEL_MEMBER void multiply(const fragments& f, const words4& x, int k, part&,
                                    float (&sum)[2][4]) const {
    TWILL_UNROLL
    for (int i = 0; i < 2; ++i)
      ptx.mma_bf16(sum[i], f.a[i], {x.word[2 * k], x.word[2 * k + 1]});
  }

  TWILL_KERNEL_MEMBER void begin_segment(bool) {}
  TWILL_KERNEL_MEMBER void end_segment(const part&, float (&)[2][4]) const {}
  TWILL_KERNEL_MEMBER void load_scales() {}
  TWILL_KERNEL_MEMBER void unswap_tiles(float (&sum)[2][4]) const {
    TWILL_UNROLL
    for (int j = 0; j < 4; ++j) {
      const float other = sum[1][j];
      sum[1][j] = exchanged ? sum[0][j] : other;
      sum[0][j] = exchanged ? other : sum[0][j];
    }
  }
};

} // namespace twill::gpu::cuda
