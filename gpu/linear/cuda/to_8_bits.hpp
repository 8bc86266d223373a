// The code of a kernel that rounds activations to int8 codes for gemm_i8.hpp, with a scale for each
// row and segment (a run of 32, 64 or 128 columns), in the order of the weights' columns.
//
// A code is x * 127 / largest rounded to an integer, ties to even, where `largest` is the largest
// magnitude of the segment. int8x2 has a second code for the residual, the error of this rounding.
// The unit of the second code is 1 / 128 of the first code's unit, so that x is scale * (code +
// residual / 128) with an error of about `largest` / 2^15 or less. A segment with a value that is
// not finite gets the scale NaN, which makes all outputs of its row NaN.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "gpu/cuda/ptx.hpp"
#include "gpu/detail/half.hpp"
#include "gpu/detail/packed_view.hpp"
#include "gpu/linear/cuda/gemm.hpp"

namespace twill::gpu::cuda {

/// Where the kernel writes the codes, and their scales and sums.
struct codes_out {
  std::int8_t* codes; // (m, cols), at a multiple of 4 bytes
  float* params;      // int8_row_params::values
};

struct to_8_bits_args {
  const float* x;            // (m, cols)
  std::int64_t x_stride;     ///< elements
  const std::int32_t* order; // (cols) the column of x that each column of the weights multiplies;
                             // null: the same column
  codes_out first, residual; ///< the residual has null pointers where it is not wanted
  std::int64_t param_rows;   ///< int8_row_params::rows
  int m, cols;
  int columns; ///< columns per segment: 32, 64 or 128; divides cols
};

/// The layout of scratch memory for the codes of `m` rows and their scales and sums.
struct int8_room {
  /// The layout has room for one scale per 32 columns even if more columns share a scale, because
  /// the caller may not know yet how the scales of the weights are stored.
  int8_room(const detail::packed_view& w, std::int64_t m)
      : param_rows((m + gemm_tile - 1) / gemm_tile * gemm_tile),
        params_at((m * w.cols + 63) / 64 * 64),
        bytes(params_at + w.cols / gemm_step * param_rows * 8) {}

  codes_out in(std::byte* scratch) const {
    return {reinterpret_cast<std::int8_t*>(scratch), reinterpret_cast<float*>(scratch + params_at)};
  }

  std::int64_t param_rows;       ///< int8_row_params::rows
  std::int64_t params_at, bytes; ///< multiples of 64
};

inline constexpr int to_8_bits_threads = 256;
inline constexpr int to_8_bits_columns = 4 * to_8_bits_threads; ///< columns of a row per block

inline std::int64_t to_8_bits_blocks(const to_8_bits_args& a) {
  return std::int64_t{a.m} * ((a.cols + to_8_bits_columns - 1) / to_8_bits_columns);
}

template <class Ptx>
struct to_8_bits {
  static constexpr float most = 127;
  /// Adding `middle` rounds a float below 2^22 to an integer, which is then in the low bits of the
  /// sum.
  static constexpr float middle = 0x1.8p23F;
  /// Columns that share a scale (a segment) and whose largest magnitude is at most this are stored
  /// as zeros, since the reciprocal of that magnitude may overflow.
  static constexpr float least = 1e-30F;
  static constexpr float residual_units = 128; ///< units of the residual in one unit of a code

  Ptx ptx;
  const to_8_bits_args& args;

  struct four {
    float value[4];
  };

  /// Loads four columns of a row; columns past the last are zeros.
  TWILL_KERNEL_MEMBER four load(const float* row, int column) const {
    four to = {};
    if (column >= args.cols) return to;
    if (args.order == nullptr && reinterpret_cast<std::uintptr_t>(row + column) % 16 == 0) {
      const auto at_once = ptx.load(reinterpret_cast<const floats4*>(row + column));
      return {at_once.value[0], at_once.value[1], at_once.value[2], at_once.value[3]};
    }
    TWILL_UNROLL
    for (int i = 0; i < 4; ++i)
      to.value[i] =
          ptx.load(row + (args.order == nullptr ? column + i : ptx.load(args.order + column + i)));
    return to;
  }

  /// The largest magnitude of the columns that share a scale (a segment), reduced over the threads
  /// that hold them; NaN where a value is not finite.
  TWILL_KERNEL_MEMBER float largest_of(const four& x) const {
    float largest = 0, nan_if_any = 0;
    TWILL_UNROLL
    for (int i = 0; i < 4; ++i) {
      largest = ::fmaxf(largest, ::fabsf(x.value[i]));
      nan_if_any += x.value[i] * 0.0F;
    }
    for (int mask = 1; mask < args.columns / 4; mask *= 2) {
      largest = ::fmaxf(largest, ptx.shuffle_xor(largest, mask));
      nan_if_any += ptx.shuffle_xor(nan_if_any, mask);
    }
    return largest + nan_if_any;
  }

  TWILL_KERNEL_MEMBER float sum_of(const four& codes) const {
    float sum = codes.value[0] + codes.value[1] + codes.value[2] + codes.value[3];
    for (int mask = 1; mask < args.columns / 4; mask *= 2)
      sum += ptx.shuffle_xor(sum, mask);
    return sum; // an integer, exact
  }

  TWILL_KERNEL_MEMBER void store(const codes_out& to, int row, int column, const four& codes,
                                 float scale) const {
    const float sum = sum_of(codes);
    if (column >= args.cols) return;
    std::uint32_t word = 0;
    TWILL_UNROLL
    for (int i = 0; i < 4; ++i)
      word |= (detail::f32_to_bits(codes.value[i] + middle) & 255U) << (8 * i);
    ptx.store(reinterpret_cast<std::uint32_t*>(to.codes + std::int64_t{row} * args.cols + column),
              word);
    if (column % args.columns != 0) return;
    const std::int64_t at = column / args.columns * args.param_rows + row;
    ptx.store(reinterpret_cast<floats2*>(to.params + 2 * at), floats2{{scale, sum}});
  }

  TWILL_KERNEL_MEMBER void run() const {
    const int of_row = (args.cols + to_8_bits_columns - 1) / to_8_bits_columns;
    const int row = ptx.block() / of_row;
    const int column = ptx.block() % of_row * to_8_bits_columns + 4 * ptx.thread();
    const four x = load(args.x + row * args.x_stride, column);
    const float largest = largest_of(x);
    const bool all_zero = largest <= least; // false for NaN
    const float inverse = largest > least ? most / largest : 0.0F;
    const float scale = all_zero ? 0.0F : largest / most;
    four codes, residual;
    TWILL_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float value = inverse > 0 ? x.value[i] : 0.0F; // otherwise x may not be finite
      codes.value[i] = ptx.add(::fmaf(value, inverse, middle), -middle);
      const float left = ::fmaf(value, inverse, -codes.value[i]);
      residual.value[i] = ptx.add(::fmaf(left, residual_units, middle), -middle);
    }
    store(args.first, row, column, codes, scale);
    if (args.residual.codes != nullptr)
      store(args.residual, row, column, residual, scale / residual_units);
  }
};

} // namespace twill::gpu::cuda
