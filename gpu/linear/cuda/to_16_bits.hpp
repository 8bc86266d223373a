// The code of a kernel that converts activations to the layout that gemm.hpp reads: rows of f16 or
// bf16 in the order of the weights' columns, each row 16-byte aligned. linear() runs the kernel
// where activations are f32, where the matrix has a column order (packed_matrix.hpp), or where rows
// are not aligned.
#pragma once

#include <cstdint>

#include "gpu/cuda/ptx.hpp"
#include "gpu/detail/half.hpp"

namespace twill::gpu::cuda {

struct to_16_bits_args {
  const void* x;             // (m, cols), f32 or 16 bits
  std::int64_t x_stride;     ///< elements
  const std::int32_t* order; // (cols) the column of x that each column of the weights multiplies;
                             // null: the same column
  std::uint16_t* to;         // (m, cols)
  int m, cols;
};

inline constexpr int to_16_bits_threads = 256;
inline constexpr int to_16_bits_columns = 1024; ///< columns of a row per block

inline std::int64_t to_16_bits_blocks(const to_16_bits_args& a) {
  return std::int64_t{a.m} * ((a.cols + to_16_bits_columns - 1) / to_16_bits_columns);
}

/// From: float, or std::uint16_t for 16-bit elements, which are copied without conversion.
template <class From, bool Bf16, class Ptx>
struct to_16_bits {
  Ptx ptx;
  const to_16_bits_args& args;

  TWILL_KERNEL_MEMBER void run() const {
    const int of_row = (args.cols + to_16_bits_columns - 1) / to_16_bits_columns;
    const std::int64_t row = ptx.block() / of_row;
    const int begin = ptx.block() % of_row * to_16_bits_columns;
    const From* from = static_cast<const From*>(args.x) + row * args.x_stride;
    std::uint16_t* to = args.to + row * args.cols;
    TWILL_UNROLL
    for (int i = 0; i < to_16_bits_columns / to_16_bits_threads; ++i) {
      const int k = begin + i * to_16_bits_threads + ptx.thread();
      if (k >= args.cols) break;
      ptx.store(to + k,
                converted(ptx.load(from + (args.order == nullptr ? k : ptx.load(args.order + k)))));
    }
  }

private:
  TWILL_KERNEL_MEMBER static std::uint16_t converted(float value) {
    return Bf16 ? detail::f32_to_bf16(value) : detail::f32_to_f16(value);
  }
  TWILL_KERNEL_MEMBER static std::uint16_t converted(std::uint16_t bits) { return bits; }
};

} // namespace twill::gpu::cuda
