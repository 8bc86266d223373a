// combine_attention: the code of the kernel that merges partial attention results. decode_attention
// stores one for each chunk of 256 positions that a row (one token) sees. A block of threads merges
// the chunks of one row and query head.
#pragma once

#include <cstdint>

#include "gpu/attention/cuda/attention_output.hpp"
#include "gpu/attention/cuda/decode_shape.hpp"
#include "gpu/attention/cuda/merge_chunks.hpp"
#include "gpu/cuda/ptx.hpp"

namespace twill::gpu::cuda {

struct combine_attention_args {
  chunk_results results;
  std::int32_t head_dim;
  std::int32_t window;             ///< 0: none
  const std::int32_t* positions;   // (n_tokens)
  const std::int32_t* first_token; // see decode_row()
  attention_output out;
};

inline constexpr int combine_threads = 128;

template <class Ptx>
struct combine_attention {
  Ptx ptx;
  const combine_attention_args& args;

  TWILL_KERNEL_MEMBER void run() {
    const std::int64_t number = ptx.block() / args.results.n_heads;
    const std::int64_t row = decode_row(ptx, number, args.first_token);
    if (row < 0) return;
    const int head = ptx.block() % args.results.n_heads;
    const int end = ptx.load(args.positions + row) + 1;
    const int begin = args.window > 0 && end > args.window ? end - args.window : 0;
    const int chunks = (end - 1) / decode_chunk - begin / decode_chunk + 1;
    const std::int64_t at = args.results.place(number, head, 0);
    for (int d = ptx.thread(); d < args.head_dim; d += combine_threads) {
      merged_chunks merged;
      float total = 0;
      for (int chunk = 0; chunk < chunks; ++chunk) {
        merged.add(ptx.load(args.results.tops + at + chunk),
                   ptx.load(args.results.weights + at + chunk));
        total = merged.merge(total, ptx.load(args.results.sums + (at + chunk) * args.head_dim + d));
      }
      args.out.store(ptx, row, std::int64_t{head} * args.head_dim + d, total / merged.sum);
    }
  }
};

} // namespace twill::gpu::cuda
