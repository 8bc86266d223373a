// read_loop: a loop that only reads memory, to measure the highest read rate of a GPU's memory. The
// loop is a template over Ptx (gpu/cuda/ptx.hpp): probe_cuda.cu instantiates it as a CUDA kernel,
// and tests run it on an emulation of a GPU.
//
// Every thread reads 16 bytes at a time, keeps several reads pending, and adds the bytes up as
// 64-bit words. Threads with neighbouring numbers read neighbouring runs of 16 bytes.
#pragma once

#include <cstdint>

#include "gpu/cuda/ptx.hpp"

namespace twill::gpu::cuda {

struct read_args {
  const words4* from;
  std::int64_t pieces; ///< of 16 bytes: a multiple of read_unroll
  std::int64_t blocks;
  std::uint64_t* sums; // (blocks, read_threads), whose sum is that of all words
};

inline constexpr int read_threads = 256;
inline constexpr int read_unroll = 8; ///< reads of a thread that are under way at once

template <class Ptx>
struct read_loop {
  Ptx ptx;
  const read_args& args;

  TWILL_KERNEL_MEMBER void run() {
    const std::int64_t me = std::int64_t{ptx.block()} * read_threads + ptx.thread();
    const std::int64_t stride = args.pieces / read_unroll;
    std::uint64_t sum = 0;
    for (std::int64_t at = me; at < stride; at += args.blocks * read_threads) {
      words4 four[read_unroll];
      for (int i = 0; i < read_unroll; ++i)
        four[i] = ptx.load(args.from + i * stride + at);
      for (const words4& w : four)
        sum += (std::uint64_t{w.word[1]} << 32 | w.word[0]) +
               (std::uint64_t{w.word[3]} << 32 | w.word[2]);
    }
    ptx.store(args.sums + me, sum);
  }
};

} // namespace twill::gpu::cuda
