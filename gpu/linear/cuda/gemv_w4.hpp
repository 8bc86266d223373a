// The body of a GEMV with 4-bit weights for 1 to 4 rows of activations, over the packed layout. It
// is written over Ptx (gpu/cuda/ptx.hpp): linear_cuda.cu makes kernels of it, tests emulate it.
//
// A block of 128 threads has one row panel: 16 outputs. Thread t reads 16 bytes of the codes at a
// time, which are column octet t / 4 of outputs 4 * (t % 4) to 4 * (t % 4) + 3. Activations pass
// through shared memory in chunks of 1024 columns, of which the next is copied while one is used.
// The order of an output's sum depends on the columns alone, so a row has the same bits with any
// number of others. Products and sums are f32.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/cuda/ptx.hpp"
#include "gpu/detail/packed_view.hpp"

namespace twill::gpu::cuda {

struct gemv_w4_args {
  detail::packed_view w;     ///< of grouped_u4
  const float* x;            // (Rows, cols)
  std::int64_t x_stride;     ///< elements
  const std::int32_t* order; // (cols) which column of x a weight's multiplies; null: its own
  const float* bias;         // (rows), or null
  float* out;                // (Rows, rows)
  std::int64_t out_stride;   ///< elements
  bool accumulate;           ///< adds to `out`
  bool vectors;              ///< x may be read in aligned pieces of 16 bytes
};

inline constexpr int gemv_w4_threads = 128;
inline constexpr int gemv_w4_chunk = 1024; ///< columns
inline constexpr int gemv_w4_most_rows = 4;

/// Bytes of shared memory: two chunks, which the sums of the four warps reuse.
constexpr int gemv_w4_shared_bytes(int rows) {
  return 2 * rows * gemv_w4_chunk * static_cast<int>(sizeof(float));
}

template <int Rows, class Ptx>
struct gemv_w4 {
  Ptx ptx;
  const gemv_w4_args& args;

  TWILL_KERNEL_MEMBER static unsigned place(int buffer, int row, std::int64_t column) {
    return static_cast<unsigned>(((buffer * Rows + row) * gemv_w4_chunk + column) * 4);
  }

  TWILL_KERNEL_MEMBER int columns_of(std::int64_t chunk) const {
    const std::int64_t left = args.w.cols - chunk * gemv_w4_chunk;
    return static_cast<int>(left < gemv_w4_chunk ? left : gemv_w4_chunk);
  }

  /// Begins to copy a chunk of the activations to a buffer.
  TWILL_KERNEL_MEMBER void stage(std::int64_t chunk, int buffer) {
    const int columns = columns_of(chunk);
    for (int row = 0; row < Rows; ++row) {
      const float* from = args.x + row * args.x_stride;
      const std::int64_t first = chunk * gemv_w4_chunk;
      if (args.vectors) {
        for (int k = 4 * ptx.thread(); k < columns; k += 4 * gemv_w4_threads)
          ptx.copy_async(place(buffer, row, k), from + first + k);
      } else {
        for (int k = ptx.thread(); k < columns; k += gemv_w4_threads) {
          const std::int64_t at =
              args.order == nullptr ? first + k : ptx.load(args.order + first + k);
          ptx.store_shared(place(buffer, row, k), ptx.load(from + at));
        }
      }
    }
    ptx.commit();
  }

  /// Adds a chunk's products to the thread's four outputs.
  TWILL_KERNEL_MEMBER void multiply(std::int64_t chunk, int buffer, float (&sum)[Rows][4]) {
    const detail::packed_view& w = args.w;
    const int columns = columns_of(chunk);
    const int quad = ptx.thread() % 4;
    const unsigned char* codes = w.codes + ptx.block() * w.codes_stride + 16 * quad;
    for (int k = 8 * (ptx.thread() / 4); k < columns; k += 2 * gemv_w4_threads) {
      const std::int64_t column = chunk * gemv_w4_chunk + k;
      const words4 four =
          ptx.load(reinterpret_cast<const words4*>(codes + column / 8 * detail::code_line_bytes));
      detail::scale_offset params[4];
      for (int i = 0; i < 4; ++i)
        params[i] = detail::group_params(w, ptx.block(), 4 * quad + i, column / w.group);
      for (int row = 0; row < Rows; ++row) {
        const auto low = ptx.template load_shared<floats4>(place(buffer, row, k));
        const auto high = ptx.template load_shared<floats4>(place(buffer, row, k + 4));
        float plain = 0;
        for (int j = 0; j < 4; ++j)
          plain += low.value[j] + high.value[j];
        for (int i = 0; i < 4; ++i) {
          float products = 0;
          for (int j = 0; j < 4; ++j) {
            const std::uint32_t both = four.word[i] >> (8 * j);
            products = ::fmaf(static_cast<float>(both & 15U), low.value[j], products);
            products = ::fmaf(static_cast<float>(both >> 4 & 15U), high.value[j], products);
          }
          sum[row][i] = ::fmaf(params[i].scale, products, sum[row][i]);
          sum[row][i] = ::fmaf(params[i].offset, plain, sum[row][i]);
        }
      }
    }
  }

  /// Adds up over the block and writes the panel's outputs.
  TWILL_KERNEL_MEMBER void finish(float (&sum)[Rows][4]) {
    constexpr int warps = gemv_w4_threads / 32;
    const int thread = ptx.thread();
    const int lane = thread % 32;
    for (int row = 0; row < Rows; ++row)
      for (int i = 0; i < 4; ++i)
        for (int mask = 4; mask < 32; mask *= 2)
          sum[row][i] += ptx.shuffle_xor(sum[row][i], mask);
    ptx.barrier(); // the chunks have been read
    if (lane < 4)
      for (int row = 0; row < Rows; ++row)
        for (int i = 0; i < 4; ++i)
          ptx.store_shared(
              static_cast<unsigned>(((thread / 32 * Rows + row) * 16 + 4 * lane + i) * 4),
              sum[row][i]);
    ptx.barrier();
    const std::int64_t output = std::int64_t{ptx.block()} * 16 + thread % 16;
    const int row = thread / 16;
    if (row >= Rows || output >= args.w.rows) return;
    float total = 0;
    for (int warp = 0; warp < warps; ++warp)
      total += ptx.template load_shared<float>(
          static_cast<unsigned>(((warp * Rows + row) * 16 + thread % 16) * 4));
    if (args.bias != nullptr) total += ptx.load(args.bias + output);
    float* to = args.out + row * args.out_stride + output;
    ptx.store(to, args.accumulate ? ptx.load(to) + total : total);
  }

  TWILL_KERNEL_MEMBER void run() {
    const std::int64_t chunks = (args.w.cols + gemv_w4_chunk - 1) / gemv_w4_chunk;
    float sum[Rows][4] = {};
    stage(0, 0);
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const int buffer = static_cast<int>(chunk % 2);
      if (chunk + 1 < chunks) {
        stage(chunk + 1, 1 - buffer);
        ptx.template wait<1>();
      } else {
        ptx.template wait<0>();
      }
      ptx.barrier();
      multiply(chunk, buffer, sum);
      ptx.barrier(); // before the buffer is overwritten
    }
    finish(sum);
  }
};

} // namespace twill::gpu::cuda
