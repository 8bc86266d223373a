// The kernels that draw a batch of rows by Kokkos teams; sampling_portable.hpp launches them. Every
// pass over a row runs one team for each part of the row (part_len logits), so that even a few rows
// keep a whole GPU busy. The teams store the results of their parts in scratch memory, and in the
// next launch each team combines the results of all parts of its row.
//
//   begin   for log-probabilities first finds each part's largest entries and copies the row;
//           applies the mask, biases and penalties, and finds each part's largest logit
//   weigh   turns logits into weights, of which the largest is 1, and counts them by their first
//           ten bits; for log-probabilities also sums the exponentials
//   narrow  two launches for top_k, then two for top_p: each finds the bin of the last histogram in
//           which the least kept weight lies, and counts this bin's weights by their next ten bits
//   cut     now knows the least kept weight; finds each part's mass (the sum of its larger weights)
//           and how many of its weights equal the least
//   draw    finds the drawn id by one team for each row, and reports (draw_team.hpp)
//
// A team whose row does not need a kernel returns at once. Masses and counts are exact
// (weight_bins.hpp), so the drawn token does not depend on the order of additions, on the number of
// threads or on other rows.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/portable/team_sums.hpp"
#include "gpu/sampling/portable/sample_step.hpp"
#include "gpu/sampling/portable/team_row.hpp"
#include "gpu/sampling/portable/weight_search.hpp"

namespace twill::gpu::detail {

/// A team of one part of a row.
template <class Member>
struct part_team {
  const sample_step& step;
  row_part part;
  sample_row params;
  team_row<Member> team;

  KOKKOS_INLINE_FUNCTION part_team(const sample_step& all, const Member& member)
      : step(all), part(part_of_team(member.league_rank(), all.batch.vocab)),
        params(all.batch.params[part.row]), team{member,
                                                 member.team_shmem().get_shmem(static_cast<int>(
                                                     team_row<Member>::scratch_bytes))} {}

  KOKKOS_INLINE_FUNCTION long slot() const { return step.first_part(part.row) + part.index; }
  KOKKOS_INLINE_FUNCTION float* logits() const { return step.logits_of(part.row) + part.begin; }
  KOKKOS_INLINE_FUNCTION part_counter<Member> counter() const {
    return {team, *static_cast<part_histogram*>(
                      team.team.team_shmem().get_shmem(static_cast<int>(sizeof(part_histogram))))};
  }
  KOKKOS_INLINE_FUNCTION weight_searcher<Member> searcher() const {
    return {step, team, part.row, params};
  }
};

template <class Member>
struct begin_team {
  sample_step step;

  KOKKOS_INLINE_FUNCTION void operator()(const Member& member) const {
    const part_team<Member> at(step, member);
    const sample_row& row = at.params;
    float* x = at.logits();
    const bool edited = is_edited(row);
    const auto rank = [&](const int i) { return rank_of(x[i], at.part.begin + i); };
    if (step.batch.reports(row)) keep_originals(at, x);
    if (row.mask != nullptr) apply_mask(at, x);
    // The token that is chosen if the biases leave none: the mask takes precedence over biases.
    const std::uint64_t fallback =
        row.n_biases > 0 || row.mask != nullptr ? at.team.top_rank(at.part.len, rank) : 0;
    if (edited) apply_edits(at, x);
    const std::uint64_t best = at.team.top_rank(at.part.len, rank);
    at.team.single([&] {
      step.best[at.slot()] = best;
      step.fallbacks[at.slot()] = fallback;
    });
    if (step.draws(row) && step.has_any(row)) clear_histograms(at);
  }

  /// Stores the part's largest entries in descending order, and a copy of its unedited logits.
  KOKKOS_INLINE_FUNCTION void keep_originals(const part_team<Member>& at, const float* x) const {
    const std::int32_t asked = step.batch.tops(at.params);
    std::uint64_t* to = step.top_entries + at.slot() * step.tops;
    std::uint64_t last = ~std::uint64_t{0};
    for (std::int32_t k = 0; k < (asked > 1 ? asked : 1); ++k) {
      last = at.team.top_rank(at.part.len, [&](const int i) {
        const std::uint64_t rank = rank_of(x[i], at.part.begin + i);
        return rank < last ? rank : std::uint64_t{0};
      });
      at.team.single([&] { to[k] = last; });
    }
    if (!is_edited(at.params) && !step.draws(at.params)) return;
    float* copy = step.raw + at.part.row * step.batch.vocab + at.part.begin;
    at.team.each(at.part.len, [&](const int i) { copy[i] = x[i]; });
  }

  KOKKOS_INLINE_FUNCTION void apply_mask(const part_team<Member>& at, float* x) const {
    const std::uint32_t* words = at.params.mask + at.part.begin / 32;
    at.team.each((at.part.len + 31) / 32, [&](const int word) {
      const std::uint32_t allowed = words[word];
      if (allowed == 0xffffffffu) return;
      for (std::int32_t i = word * 32; i < word * 32 + 32 && i < at.part.len; ++i)
        if ((allowed >> (i % 32) & 1u) == 0) x[i] = -INFINITY;
    });
  }

  /// Ids may repeat among the biases, so one lane adds them.
  KOKKOS_INLINE_FUNCTION void apply_edits(const part_team<Member>& at, float* x) const {
    const auto is_here = [&](std::int32_t id) {
      return id >= at.part.begin && id - at.part.begin < at.part.len;
    };
    at.team.single([&] {
      for (std::int32_t i = 0; i < at.params.n_biases; ++i) {
        const token_bias b = at.params.biases[i];
        if (is_here(b.id)) x[b.id - at.part.begin] += b.bias;
      }
    });
    at.team.each(at.params.n_counts, [&](const int i) {
      const token_count c = at.params.counts[i];
      if (!is_here(c.id)) return;
      float& logit = x[c.id - at.part.begin];
      logit = penalised(logit, c, at.params);
    });
  }

  /// Clears the part's share of the row's histograms.
  KOKKOS_INLINE_FUNCTION void clear_histograms(const part_team<Member>& at) const {
    auto* words =
        reinterpret_cast<std::uint32_t*>(&step.histogram(at.part.row, cut_kind::top_k, 1));
    constexpr auto n = static_cast<std::int32_t>(histograms_of_row * sizeof(row_histogram) / 4);
    const std::int32_t share = (n + step.parts - 1) / step.parts;
    const std::int32_t begin = at.part.index * share;
    const std::int32_t left = n - begin;
    at.team.each(left < share ? left : share, [&](const int i) { words[begin + i] = 0; });
  }
};

template <class Member>
struct weigh_team {
  sample_step step;

  KOKKOS_INLINE_FUNCTION void operator()(const Member& member) const {
    const part_team<Member> at(step, member);
    const sample_row& row = at.params;
    const long first = step.first_part(at.part.row);
    if (step.batch.reports(row)) {
      const float max =
          value_of(at.team.top_rank(step.top_entries + first * step.tops, step.parts, step.tops));
      const float* original = step.original_of(at.part.row, row) + at.part.begin;
      const double sum = at.team.sum_exp(original, at.part.len, max);
      at.team.single([&] { step.sums[at.slot()] = sum; });
    }
    const std::uint64_t best =
        step.draws(row) ? at.team.top_rank(step.best + first, step.parts) : 0;
    const float max = value_of(best);
    const bool is_drawn = best != 0 && max < INFINITY;
    if (at.part.index == 0) at.team.single([&] { step.progress[at.part.row].is_drawn = is_drawn; });
    if (!is_drawn) return;
    const float inverse = inverse_temperature(row);
    float* x = at.logits();
    const auto weight = [&](const int i) {
      const float e = ::expf((x[i] - max) * inverse);
      return x[i] = e == e ? e : 0.0f;
    };
    if (!step.has_any(row)) {
      at.team.each(at.part.len, weight);
      return;
    }
    const std::uint32_t least = least_weight(row);
    const part_counter<Member> counter = at.counter();
    counter.clear();
    at.team.each(at.part.len, [&](const int i) {
      const std::uint32_t bits = f32_to_bits(weight(i));
      if (bits >= least) counter.add(bits, 1);
    });
    counter.add_to(step.histogram(at.part.row, cut_kind::top_k, 1));
  }
};

/// The kernel `narrow`: finds the bin of the previous level (weight_bins.hpp) that holds the least
/// kept weight, and counts the weights of this bin by their next ten bits.
template <class Member>
struct narrow_team {
  sample_step step;
  cut_kind kind;
  int level; ///< 2 or 3

  KOKKOS_INLINE_FUNCTION void operator()(const Member& member) const {
    const part_team<Member> at(step, member);
    row_progress& progress = step.progress[at.part.row];
    if (!step.has(kind, at.params) || progress.is_drawn == 0) return;
    const weight_search found = at.searcher().at_level(kind, level - 1);
    if (at.part.index == 0)
      at.team.single([&] { progress.search[static_cast<int>(kind)][level - 2] = found; });
    if (found.is_on == 0) return;
    const float* weights = at.logits();
    const std::uint32_t least = least_weight(at.params);
    const part_counter<Member> counter = at.counter();
    counter.clear();
    at.team.each(at.part.len, [&](const int i) {
      const std::uint32_t bits = f32_to_bits(weights[i]);
      if (bits >= least && in_bin(bits, found.edge, level - 1)) counter.add(bits, level);
    });
    counter.add_to(step.histogram(at.part.row, kind, level));
  }
};

template <class Member>
struct cut_team {
  sample_step step;

  KOKKOS_INLINE_FUNCTION void operator()(const Member& member) const {
    const part_team<Member> at(step, member);
    row_progress& progress = step.progress[at.part.row];
    if (!step.draws(at.params) || progress.is_drawn == 0) return;
    const weight_searcher<Member> searcher = at.searcher();
    const weight_search k = searcher.at_level(cut_kind::top_k, bin_levels);
    const weight_search p = searcher.at_level(cut_kind::top_p, bin_levels);
    std::uint32_t threshold = least_weight(at.params);
    std::int32_t kept_ties = every_tie;
    const auto keep = [&](const weight_search& s) {
      if (s.is_on == 0 || s.edge < threshold) return;
      kept_ties = s.edge > threshold || s.kept_ties < kept_ties ? s.kept_ties : kept_ties;
      threshold = s.edge;
    };
    keep(k);
    keep(p);
    const float* weights = at.logits();
    const mass_units units(step.batch.vocab);
    team_sums<std::uint64_t, 2> sums; // of the weights above the threshold; those that equal it
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(member, at.part.len),
        [&](const int i, team_sums<std::uint64_t, 2>& some) {
          const std::uint32_t bits = f32_to_bits(weights[i]);
          if (bits > threshold) some.value[0] += units(bits);
          some.value[1] += bits == threshold;
        },
        Kokkos::Sum<team_sums<std::uint64_t, 2>>(sums));
    at.team.single([&] {
      step.masses[at.slot()] = sums.value[0];
      step.ties[at.slot()] = static_cast<std::int32_t>(sums.value[1]);
      if (at.part.index != 0) return;
      progress.threshold = threshold;
      progress.kept_ties = kept_ties;
    });
  }
};

} // namespace twill::gpu::detail
