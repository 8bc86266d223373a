// sample_step: the arguments of the kernels of sample_kernels.hpp and draw_team.hpp: a batch of
// rows to draw, and the addresses of its scratch memory.
#pragma once

#include <cstdint>

#include "gpu/detail/half.hpp"
#include "gpu/sampling/detail/row_math.hpp"
#include "gpu/sampling/detail/row_parts.hpp"
#include "gpu/sampling/detail/weight_bins.hpp"

namespace twill::gpu::detail {

enum class cut_kind : int { top_k, top_p };

/// A batch of rows and its scratch memory, which all kernels receive.
struct sample_step {
  sample_batch batch;
  std::int32_t parts;              ///< of a row
  std::int32_t tops;               ///< largest entries that a part keeps
  bool any_draw;                   ///< some row may be drawn at random
  bool cuts[2];                    ///< some row may have a top_k, a top_p
  std::uint64_t *best, *fallbacks; // (rows, parts) ranks
  std::uint64_t* top_entries;      // (rows, parts, tops) ranks
  double* sums;                    // (rows, parts)
  std::uint64_t* masses;           // (rows, parts)
  std::int32_t* ties;              // (rows, parts)
  row_progress* progress;          // (rows)
  row_histogram* histograms;       // (rows, histograms_of_row)
  float* raw;                      // (rows, vocab), where log-probabilities are asked for

  sample_step(const sample_batch& rows, const sample_args& args, const sample_layout& at,
              unsigned char* memory)
      : batch(rows), parts(static_cast<std::int32_t>(parts_of(rows.vocab))),
        tops(kept_tops(rows.max_top)),
        any_draw(args.any_draw), cuts{args.any_draw && args.any_top_k,
                                      args.any_draw && args.any_top_p},
        best(reinterpret_cast<std::uint64_t*>(memory + at.best)),
        fallbacks(reinterpret_cast<std::uint64_t*>(memory + at.fallbacks)),
        top_entries(reinterpret_cast<std::uint64_t*>(memory + at.tops)),
        sums(reinterpret_cast<double*>(memory + at.sums)),
        masses(reinterpret_cast<std::uint64_t*>(memory + at.masses)),
        ties(reinterpret_cast<std::int32_t*>(memory + at.ties)),
        progress(reinterpret_cast<row_progress*>(memory + at.progress)),
        histograms(reinterpret_cast<row_histogram*>(memory + at.histograms)),
        raw(reinterpret_cast<float*>(memory + at.raw)) {}

  TWILL_KERNEL_MEMBER long first_part(long row) const { return row * parts; }
  TWILL_KERNEL_MEMBER float* logits_of(long row) const { return batch.logits + row * batch.stride; }
  TWILL_KERNEL_MEMBER bool draws(const sample_row& row) const {
    return any_draw && asks_for_draw(row);
  }
  /// The logits before edits and weights.
  TWILL_KERNEL_MEMBER const float* original_of(long row, const sample_row& params) const {
    return is_edited(params) || draws(params) ? raw + row * batch.vocab : logits_of(row);
  }
  TWILL_KERNEL_MEMBER bool has(cut_kind kind, const sample_row& row) const {
    if (!cuts[static_cast<int>(kind)]) return false;
    return kind == cut_kind::top_k ? row.top_k > 0 && row.top_k < batch.vocab : row.top_p < 1;
  }
  TWILL_KERNEL_MEMBER bool has_any(const sample_row& row) const {
    return has(cut_kind::top_k, row) || has(cut_kind::top_p, row);
  }
  TWILL_KERNEL_MEMBER row_histogram& histogram(long row, cut_kind kind, int level) const {
    const int index = level == 1 ? 0 : level - 1 + static_cast<int>(kind) * (bin_levels - 1);
    return histograms[row * histograms_of_row + index];
  }
};

} // namespace twill::gpu::detail
