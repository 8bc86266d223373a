// Loops that do nothing but multiply and add in registers: what a GPU can do at most. Written over
// Ptx (gpu/cuda/ptx.hpp): probe_cuda.cu makes kernels of them, tests emulate them.
//
// Each thread has several chains of sums that do not depend on each other, so that the latency of
// an instruction is hidden also where a multiprocessor has few warps. No compiler can leave a loop
// out: operands are arguments, chains begin with different numbers, and the sums are stored.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/cuda/ptx.hpp"

namespace twill::gpu::cuda {

struct peak_args {
  std::uint32_t pair;   ///< of mma: two f16, which all of its operands are made of
  std::uint32_t codes;  ///< of mma_int8: four int8, likewise
  float factor, addend; ///< of fma
  std::int32_t rounds;
  float* out; // (blocks, peak_threads)
};

inline constexpr int peak_threads = 256;
inline constexpr int peak_chains = 8;
/// Operations of one thread in one round; a multiply-add is two. A warp's mma is 16 x 8 x 16 of
/// them.
inline constexpr double peak_mma_operations = 2.0 * 16 * 8 * 16 / 32 * peak_chains;
inline constexpr double peak_int8_operations = 2.0 * 16 * 8 * 32 / 32 * peak_chains; // 16 x 8 x 32
inline constexpr double peak_fma_operations = 2.0 * peak_chains * 4;

template <class Ptx>
struct peak_loop {
  Ptx ptx;
  const peak_args& args;

  /// Products of f16, sums in f32, by the tensor cores: each sum grows by 16 products a round.
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

  /// The same of int8, with sums in int32, each of which grows by 32 products a round.
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

  /// Multiply-adds of f32: each sum becomes sum * factor + addend.
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
