// Merges the partial attention results of a row (one token), one for each chunk of 256 positions.
// Every kernel that merges does so in the order of the chunks and by the same operations, so that
// the bits do not depend on which kernel merges.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/detail/half.hpp"

namespace twill::gpu::cuda {

/// Converts `number`, the number of a row (one token) in a launch, to the row's index in the step.
/// If `first_token` is null, the launch computes every row of the step. Otherwise it computes only
/// rows whose sequence has no other row in the step: `number` is then the number of a sequence, and
/// `first_token` is ragged_batch::first_token. The result is -1 where that sequence has no row, or
/// has several rows, which prefill attention computes.
template <class Ptx>
TWILL_KERNEL_FUNCTION std::int64_t decode_row(Ptx ptx, std::int64_t number,
                                              const std::int32_t* first_token) {
  if (first_token == nullptr) return number;
  const std::int32_t first = ptx.load(first_token + number);
  return ptx.load(first_token + number + 1) - first == 1 ? first : -1;
}

/// The partial results of attention in device memory, one for each row of a launch, query head and
/// chunk of 256 positions. The struct does not own the memory.
struct chunk_results {
  float* tops;    // (rows, n_heads, chunks) largest scores
  float* weights; // (rows, n_heads, chunks) sums of exp(score - top)
  float* sums;    // (rows, n_heads, chunks, head_dim) of values with these weights
  std::int32_t n_heads, chunks;

  TWILL_KERNEL_MEMBER std::int64_t place(std::int64_t number, int head, int chunk) const {
    return (number * n_heads + head) * chunks + chunk;
  }
};

/// The merged result of the chunks of a head that have been added so far.
struct merged_chunks {
  float top = -INFINITY; ///< the largest score
  float sum = 0;         ///< of the softmax weights
  float keep = 0, take = 0;

  /// Adds a chunk's largest score and its sum of weights. The caller must then add each of the
  /// chunk's sums of weighted values by merge().
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
