// How the portable implementation divides rows of logits among teams, and the layout of the scratch
// memory through which teams pass results to later launches. Pure arithmetic.
//
// A row is divided into parts of part_len logits. Parts begin at logit 0 and do not depend on the
// other rows of the batch.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/detail/half.hpp"
#include "gpu/sampling/detail/weight_bins.hpp"

namespace twill::gpu::detail {

/// The number of logits in a part: a multiple of 32, so that each 32-bit word of a token mask
/// belongs to one part, and small enough for the 32-bit sums of a part_histogram.
inline constexpr std::int32_t part_len = 4096;

constexpr TWILL_KERNEL_INLINE std::int64_t parts_of(std::int64_t vocab) {
  return (vocab + part_len - 1) / part_len;
}

/// Part `index` of row `row`: logits [begin, begin + len).
struct row_part {
  long row;
  std::int32_t index, begin, len;
};
TWILL_KERNEL_INLINE row_part part_of_team(std::int64_t team, std::int32_t vocab) {
  const std::int64_t parts = parts_of(vocab);
  const std::int64_t row = team / parts;
  const auto index = static_cast<std::int32_t>(team - row * parts);
  const std::int32_t begin = index * part_len;
  return {row, index, begin, vocab - begin < part_len ? vocab - begin : part_len};
}

/// Rows that sample() draws at once: bounds its scratch memory.
inline constexpr std::int64_t rows_at_once = 128;

/// The state of the search for the least weight that top_k, or top_p, keeps. `edge` holds the
/// leading bits of this weight that are known so far, followed by zeros; the weights with these
/// leading bits form the bin that is searched next.
struct weight_search {
  std::uint32_t edge;
  std::int32_t is_on;     ///< 0: every weight is kept
  std::int32_t wanted;    ///< top_k: number of weights in the bin to keep
  std::int32_t kept_ties; ///< once all bits of `edge` are known: how many of the weights equal to
                          ///< it are kept
  double mass_above;      ///< of all weights above the bin
  double wanted_mass;     ///< top_p: the part of the bin's mass to keep
};

/// The progress of a row that is drawn at random, which is passed from launch to launch.
struct row_progress {
  std::int32_t is_drawn; ///< 0: its token is the one with the largest logit
  std::uint32_t threshold;
  std::int32_t kept_ties;     ///< of the weights that equal the threshold; every_tie: all of them
  weight_search search[2][2]; ///< of top_k and top_p, after one and two levels
};

/// The number of histograms per row: one of all weights, and for each further level of bins
/// (weight_bins.hpp) one of the weights in top_k's bin and one of the weights in top_p's bin.
inline constexpr std::int32_t histograms_of_row = 1 + 2 * (bin_levels - 1);

/// Scratch memory of sample() for one batch of rows, as byte offsets.
struct sample_layout {
  std::int64_t best, fallbacks, tops, sums, masses, ties, progress, histograms, raw, bytes;
};

/// The layout of scratch memory for a batch. Only with log-probabilities does it have room for the
/// largest logits of each part of a row.
constexpr sample_layout sample_layout_of(std::int64_t rows, std::int64_t vocab, bool any_logprobs,
                                         std::int32_t tops) {
  const std::int64_t parts = rows * parts_of(vocab);
  sample_layout at{};
  const auto take = [&](std::int64_t items, std::int64_t size) {
    const std::int64_t begin = at.bytes;
    at.bytes += (items * size + 63) / 64 * 64;
    return begin;
  };
  at.best = take(parts, 8);
  at.fallbacks = take(parts, 8);
  at.masses = take(parts, 8);
  at.ties = take(parts, 4);
  at.progress = take(rows, sizeof(row_progress));
  at.histograms = take(rows * histograms_of_row, sizeof(row_histogram));
  at.tops = take(any_logprobs ? parts * tops : 0, 8);
  at.sums = take(any_logprobs ? parts : 0, 8);
  at.raw = take(any_logprobs ? rows * vocab : 0, 4);
  return at;
}

/// The number of largest entries that each part of a row keeps, at least its maximum.
constexpr TWILL_KERNEL_INLINE std::int32_t kept_tops(std::int32_t max_top) {
  return max_top > 1 ? max_top : 1;
}

constexpr std::int64_t sample_scratch_bytes(std::int64_t rows, std::int64_t vocab,
                                            bool any_logprobs, std::int32_t max_top) {
  return sample_layout_of(std::min(rows, rows_at_once), vocab, any_logprobs, kept_tops(max_top))
      .bytes;
}

} // namespace twill::gpu::detail
