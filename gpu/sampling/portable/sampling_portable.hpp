// The portable implementation of sampling: Kokkos kernels with a team for each part of a row
// (row_parts.hpp). sample() takes 2 to 8 launches for each rows_at_once rows, depending on the
// rows' options; argmax() takes two launches and token_logprobs() three. A later launch combines
// the results of a row's parts, in an order that depends on the size of the vocabulary alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/detail/sampling_backend.hpp"
#include "gpu/portable/launch.hpp"
#include "gpu/sampling/detail/row_math.hpp"
#include "gpu/sampling/detail/row_parts.hpp"
#include "gpu/sampling/portable/draw_team.hpp"
#include "gpu/sampling/portable/sample_kernels.hpp"
#include "gpu/sampling/portable/team_row.hpp"

namespace twill::gpu::detail {

/// The logits of rows, and the results of their parts.
struct logit_rows {
  const float* logits;
  long stride;
  std::int32_t vocab, parts;
  std::uint64_t* best; // (rows, parts) ranks
  double* sums;        // (rows, parts)
};

template <class Member>
struct best_of_part_team {
  logit_rows rows;

  KOKKOS_INLINE_FUNCTION void operator()(const Member& member) const {
    const row_part part = part_of_team(member.league_rank(), rows.vocab);
    const float* x = rows.logits + part.row * rows.stride + part.begin;
    const team_row<Member> team{member, nullptr};
    const std::uint64_t best =
        team.top_rank(part.len, [&](const int i) { return rank_of(x[i], part.begin + i); });
    team.single([&] { rows.best[member.league_rank()] = best; });
  }
};

template <class Member>
struct argmax_team {
  logit_rows rows;
  std::int32_t* tokens;

  KOKKOS_INLINE_FUNCTION void operator()(const Member& member) const {
    const long r = member.league_rank();
    const team_row<Member> team{member, nullptr};
    const std::int32_t id = id_of(team.top_rank(rows.best + r * rows.parts, rows.parts));
    team.single([&] { tokens[r] = id < 0 ? 0 : id; });
  }
};

template <class Member>
struct sum_of_part_team {
  logit_rows rows;

  KOKKOS_INLINE_FUNCTION void operator()(const Member& member) const {
    const row_part part = part_of_team(member.league_rank(), rows.vocab);
    const team_row<Member> team{member, nullptr};
    const float max = value_of(team.top_rank(rows.best + part.row * rows.parts, rows.parts));
    const double sum =
        team.sum_exp(rows.logits + part.row * rows.stride + part.begin, part.len, max);
    team.single([&] { rows.sums[member.league_rank()] = sum; });
  }
};

template <class Member>
struct token_logprobs_team {
  logit_rows rows;
  const std::int32_t* ids;
  float* logprobs;

  KOKKOS_INLINE_FUNCTION void operator()(const Member& member) const {
    const long r = member.league_rank();
    const team_row<Member> team{
        member, member.team_shmem().get_shmem(static_cast<int>(team_row<Member>::scratch_bytes))};
    const float max = value_of(team.top_rank(rows.best + r * rows.parts, rows.parts));
    const double* sums = rows.sums + r * rows.parts;
    const double sum = team.template sum_in_order<double>(
        rows.parts, [&](const std::int32_t p) { return sums[p]; });
    const float x = rows.logits[r * rows.stride + ids[r]];
    team.single([&] { logprobs[r] = log_probability(x, max, log_of_sum(sum)); });
  }
};

template <class Launch>
struct sampling_portable {
  using member = typename Launch::member;
  /// Lanes of a team on another chip.
  static constexpr int part_lanes = 512, row_lanes = 128;
  static constexpr long row_scratch = team_row<member>::scratch_bytes;
  static constexpr long part_scratch = row_scratch + static_cast<long>(sizeof(part_histogram));

  /// Bytes of the parts' results of argmax() and token_logprobs().
  static std::int64_t reduction_bytes(std::int64_t rows, std::int64_t vocab) {
    return rows * parts_of(vocab) *
           static_cast<std::int64_t>(sizeof(std::uint64_t) + sizeof(double));
  }

  static std::int64_t scratch_bytes(const device&, std::int64_t rows, std::int64_t vocab,
                                    bool any_logprobs, std::int32_t max_top) {
    return std::max(sample_scratch_bytes(rows, vocab, any_logprobs, max_top),
                    reduction_bytes(rows, vocab));
  }

  static void sample(device& dev, const sample_args& args) {
    const sample_batch all = batch_of(args);
    const std::int64_t at_once = std::min<std::int64_t>(all.rows, rows_at_once);
    const sample_layout layout =
        sample_layout_of(at_once, all.vocab, all.any_logprobs, kept_tops(all.max_top));
    auto* memory = static_cast<unsigned char*>(dev.scratch(static_cast<std::size_t>(layout.bytes)));
    for (long first = 0; first < all.rows; first += at_once) {
      const sample_batch some = rows_of(all, first, std::min<long>(at_once, all.rows - first));
      launch(dev, sample_step(some, args, layout, memory));
    }
  }

  static void launch(device& dev, const sample_step& step) {
    const long parts = step.batch.rows * step.parts;
    const team_shape shape{.scratch_bytes = part_scratch, .chip_lanes = part_lanes};
    Launch::teams(dev, "sample: begin", parts, begin_team<member>{step}, shape);
    if (step.any_draw || step.batch.any_logprobs)
      Launch::teams(dev, "sample: weigh", parts, weigh_team<member>{step}, shape);
    for (const cut_kind kind : {cut_kind::top_k, cut_kind::top_p})
      for (int level = 2; level <= bin_levels && step.cuts[static_cast<int>(kind)]; ++level)
        Launch::teams(dev, "sample: narrow", parts, narrow_team<member>{step, kind, level}, shape);
    if (step.any_draw) Launch::teams(dev, "sample: cut", parts, cut_team<member>{step}, shape);
    Launch::teams(dev, "sample: draw", step.batch.rows, draw_team<member>{step},
                  {.scratch_bytes = row_scratch, .chip_lanes = row_lanes});
  }

  /// Rows [first, first + n) of a batch.
  static sample_batch rows_of(sample_batch batch, long first, long n) {
    batch.rows = n;
    batch.logits += first * batch.stride;
    batch.params += first;
    batch.tokens += first;
    if (batch.any_logprobs) {
      batch.logprobs += first;
      batch.top_ids += first * batch.max_top;
      batch.top_logprobs += first * batch.max_top;
    }
    return batch;
  }

  static logit_rows divided(device& dev, const tensor_ref& logits) {
    const std::int64_t vocab = logits.shape[1];
    const std::int64_t parts = logits.shape[0] * parts_of(vocab);
    auto* best = static_cast<std::uint64_t*>(
        dev.scratch(static_cast<std::size_t>(reduction_bytes(logits.shape[0], vocab))));
    return {logits.as<const float>(),
            static_cast<long>(logits.row_stride),
            static_cast<std::int32_t>(vocab),
            static_cast<std::int32_t>(parts_of(vocab)),
            best,
            reinterpret_cast<double*>(best + parts)};
  }

  static void argmax(device& dev, const tensor_ref& logits, std::int32_t* tokens) {
    if (logits.shape[0] == 0) return;
    const logit_rows rows = divided(dev, logits);
    best_of_parts(dev, rows, logits.shape[0]);
    Launch::teams(dev, "argmax", logits.shape[0], argmax_team<member>{rows, tokens},
                  {.chip_lanes = row_lanes});
  }

  static void token_logprobs(device& dev, const tensor_ref& logits, const std::int32_t* ids,
                             float* logprobs) {
    if (logits.shape[0] == 0) return;
    const logit_rows rows = divided(dev, logits);
    best_of_parts(dev, rows, logits.shape[0]);
    Launch::teams(dev, "sums of parts", logits.shape[0] * rows.parts,
                  sum_of_part_team<member>{rows}, {.chip_lanes = part_lanes});
    Launch::teams(dev, "token_logprobs", logits.shape[0],
                  token_logprobs_team<member>{rows, ids, logprobs},
                  {.scratch_bytes = row_scratch, .chip_lanes = row_lanes});
  }

  static void best_of_parts(device& dev, const logit_rows& rows, long n) {
    Launch::teams(dev, "best of parts", n * rows.parts, best_of_part_team<member>{rows},
                  {.chip_lanes = part_lanes});
  }

  static constexpr sampling_backend table{scratch_bytes, sample, argmax, token_logprobs};
};

} // namespace twill::gpu::detail
