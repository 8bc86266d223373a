// peak_loops: loops that only multiply and add in registers, to measure the highest arithmetic rate
// of a GPU. The loops are templates over Ptx (gpu/cuda/ptx.hpp): probe_cuda.cu instantiates them as
// CUDA kernels, and tests run them on an emulation of a GPU.
//
// Each thread has several independent chains of sums, which hide the latency of an instruction even
// where a multiprocessor has few warps. The compiler cannot remove a loop, because operands are
// arguments, chains start with different numbers, and the sums are stored.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/cuda/ptx.hpp"

namespace twill::gpu::cuda {

struct peak_args {
  std::uint32_t pair;   ///< for mma: two f16, of which all operands are made
  std::uint32_t codes;  ///< for mma_int8: four int8, of which all operands are made
  float factor, addend; ///< of fma
  std::int32_t rounds;
  float* out; // (blocks, peak_threads)
};

inline constexpr int peak_threads = 256;
inline constexpr int peak_chains = 8;
/// Operations of one thread in one iteration of a loop; a multiply-add counts as two. One mma of a
/// warp is 16 x 8 x 16 multiply-adds.
inline constexpr double peak_mma_operations = 2.0 * 16 * 8 * 16 / 32 * peak_chains;
inline constexpr double peak_int8_operations = 2.0 * 16 * 8 * 32 / 32 * peak_chains; // 16 x 8 x 32
inline constexpr double peak_fma_operations = 2.0 * peak_chains * 4;

template <class Ptx>
struct peak_loop {
  Ptx ptx;
  const peak_args& args;

  /// f16 products with f32 sums on the tensor cores. Each sum grows by 16 products per round.
  TWILL_KERNEL_MEMBER void mma() {
    const std::uint32_t a[4] = {args.pair, args.pair, args.pair, args.pair};
    const std::uint32_t b[2] = {args.pair, args.pair};
    float sum[peak_chains][4];
    begin(sum);
    for (std::int32_t round = 0; round < args.rounds; ++round)
      for (auto& chain : sum)
        ptx.mma_f16(chain, a, b);
    finish(sum);
  }

  /// int8 products with int32 sums on the tensor cores. Each sum grows by 32 products per round.
  TWILL_KERNEL_MEMBER void mma_int8() {
    const std::uint32_t a[4] = {args.codes, args.codes, args.codes, args.codes};
    const std::uint32_t b[2] = {args.codes, args.codes};
    std::int32_t sum[peak_chains][4];
    for (int i = 0; i < 4 * peak_chains; ++i)
      sum[i / 4][i % 4] = i;
    for (std::int32_t round = 0; round < args.rounds; ++round)
      for (auto& chain : sum) {
        std::int32_t next[4];
        ptx.mma_s8(next, a, b, chain);
        for (int i = 0; i < 4; ++i)
          chain[i] = next[i];
      }
    float as_floats[peak_chains][4];
    for (int i = 0; i < 4 * peak_chains; ++i)
      as_floats[i / 4][i % 4] = static_cast<float>(sum[i / 4][i % 4]);
    finish(as_floats);
  }

  /// f32 multiply-adds. In each round each sum becomes sum * factor + addend.
  TWILL_KERNEL_MEMBER void fma() {
    float sum[peak_chains][4];
    begin(sum);
    for (std::int32_t round = 0; round < args.rounds; ++round)
      for (auto& chain : sum)
        for (float& one : chain)
          one = ::fmaf(one, args.factor, args.addend);
    finish(sum);
  }

private:
  TWILL_KERNEL_MEMBER static void begin(float (&sum)[peak_chains][4]) {
    for (int i = 0; i < 4 * peak_chains; ++i)
      sum[i / 4][i % 4] = static_cast<float>(i);
  }
  TWILL_KERNEL_MEMBER void finish(const float (&sum)[peak_chains][4]) {
    float total = 0;
    for (const auto& chain : sum)
      for (const float one : chain)
        total += one;
    ptx.store(args.out + std::int64_t{ptx.block()} * peak_threads + ptx.thread(), total);
  }
};

} // namespace twill::gpu::cuda
