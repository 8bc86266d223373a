// How the results of a row's chunks become one: in the order of the chunks, by the same operations
// wherever it happens, so that the bits do not depend on who merges.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/detail/half.hpp"

namespace twill::gpu::cuda {

/// The row of number `number` in a launch. Without `first_token`, (n_sequences + 1), every row of
/// the step is one of the launch. With it the rows that are alone in their sequences are, of which
/// `number` is the sequence's; -1 where that has none or several, which prefill attention takes.
template <class Ptx>
TWILL_KERNEL_FUNCTION std::int64_t decode_row(Ptx ptx, std::int64_t number,
                                              const std::int32_t* first_token) {
  if (first_token == nullptr) return number;
  const std::int32_t first = ptx.load(first_token + number);
  return ptx.load(first_token + number + 1) - first == 1 ? first : -1;
}

/// Results of chunks in device memory, one for each row of a launch, query head and chunk. It does
/// not own the memory.
struct chunk_results {
  float* tops;    // (rows, n_heads, chunks) largest scores
  float* weights; // (rows, n_heads, chunks) sums of exp(score - top)
  float* sums;    // (rows, n_heads, chunks, head_dim) of values with these weights
  std::int32_t n_heads, chunks;

  TWILL_KERNEL_MEMBER std::int64_t place(std::int64_t number, int head, int chunk) const {
    return (number * n_heads + head) * chunks + chunk;
  }
};

/// The chunks of a head that have been added.
struct merged_chunks {
  float top = -INFINITY; ///< the largest score
  float sum = 0;         ///< of the softmax weights
  float keep = 0, take = 0;

  /// Adds a chunk. Each sum of values is to be merged by merge() afterwards.
  TWILL_KERNEL_MEMBER void add(float chunk_top, float chunk_sum) {
    const float larger = chunk_top > top ? chunk_top : top;
    keep = ::expf(top - larger);
    take = ::expf(chunk_top - larger);
    top = larger;
    sum = merge(sum, chunk_sum);
  }
  TWILL_KERNEL_MEMBER float merge(float total, float of_chunk) const {
    return ::fmaf(total, keep, of_chunk * take);
  }
};

} // namespace twill::gpu::cuda
