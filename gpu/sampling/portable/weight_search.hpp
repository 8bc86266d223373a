// The search for the least weight that top_k, or top_p, keeps. Each level counts weights by ten of
// their bits, and the counts determine the bin that holds the least kept weight (weight_bins.hpp).
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/portable/team_sums.hpp"
#include "gpu/sampling/portable/sample_step.hpp"
#include "gpu/sampling/portable/team_row.hpp"

namespace twill::gpu::detail {

/// Counts how many weights of a row's part fall into each bin (weight_bins.hpp), in the team's
/// scratch memory, then adds the counts to the row's histogram.
template <class Member>
struct part_counter {
  const team_row<Member>& row;
  part_histogram& part;

  KOKKOS_INLINE_FUNCTION void clear() const {
    row.each(n_bins, [&](const int b) { part.rest[b] = part.count[b] = 0; });
  }
  KOKKOS_INLINE_FUNCTION void add(std::uint32_t bits, int level) const {
    const std::int32_t bin = bin_of(bits, level);
    Kokkos::atomic_add(&part.count[bin], 1u);
    if (level < bin_levels) Kokkos::atomic_add(&part.rest[bin], rest_of(bits, level));
  }
  KOKKOS_INLINE_FUNCTION void add_to(row_histogram& all) const {
    row.team.team_barrier();
    row.each(n_bins, [&](const int b) {
      if (part.count[b] == 0) return;
      Kokkos::atomic_add(&all.count[b], part.count[b]);
      Kokkos::atomic_add(&all.rest[b], static_cast<std::uint64_t>(part.rest[b]));
    });
  }
};

struct bin_tally {
  double mass = 0;
  std::int64_t count = 0;
  KOKKOS_INLINE_FUNCTION bin_tally& operator+=(const bin_tally& other) {
    mass += other.mass;
    count += other.count;
    return *this;
  }
};

/// Searches for the least weight that a row keeps, using the histograms (counts and sums of weights
/// per bin, weight_bins.hpp) that earlier launches have filled.
template <class Member>
struct weight_searcher {
  const sample_step& step;
  const team_row<Member>& team;
  long row;
  const sample_row& params;

  /// Bins in descending order: item i of the histogram.
  KOKKOS_INLINE_FUNCTION bin_tally bin(const row_histogram& all, const weight_search& s, int level,
                                       std::int32_t i) const {
    const std::int32_t at = n_bins - 1 - i;
    const std::uint32_t edge = s.edge | static_cast<std::uint32_t>(at) << bin_shift(level);
    bin_tally here;
    here.count = all.count[at];
    here.mass = bin_mass(edge, all.count[at], all.rest[at]);
    if (level == 1) {
      const double quantum = mass_quantum(step.batch.vocab);
      here.mass = ::floor(here.mass / quantum) * quantum;
    }
    return here;
  }

  KOKKOS_INLINE_FUNCTION weight_search narrowed(cut_kind kind, weight_search s, int level) const {
    if (s.is_on == 0) return s;
    const row_histogram& all = step.histogram(row, kind, level);
    const passing<bin_tally> at = team.template first_past<bin_tally>(
        n_bins, [&](const std::int32_t i) { return bin(all, s, level, i); },
        [&](const bin_tally& sum) {
          return kind == cut_kind::top_k ? sum.count >= s.wanted : sum.mass >= s.wanted_mass;
        });
    if (at.index < 0) { // all weights together do not reach the wanted mass: all are kept
      s.is_on = 0;
      return s;
    }
    const std::int32_t found = n_bins - 1 - at.index;
    s.edge |= static_cast<std::uint32_t>(found) << bin_shift(level);
    s.wanted -= static_cast<std::int32_t>(at.before.count);
    s.wanted_mass -= at.before.mass;
    s.mass_above += at.before.mass;
    if (level < bin_levels) return s;
    s.kept_ties = s.wanted;
    if (kind == cut_kind::top_p) {
      const auto count = static_cast<double>(all.count[found]);
      const double ties = ::ceil(s.wanted_mass / static_cast<double>(bits_to_f32(s.edge)));
      s.kept_ties = static_cast<std::int32_t>(ties < 1 ? 1 : ties < count ? ties : count);
    }
    return s;
  }

  /// The initial state of a search, before the histogram of all weights.
  KOKKOS_INLINE_FUNCTION weight_search begun(cut_kind kind) const {
    weight_search s{0, step.has(kind, params), params.top_k, 0, 0.0, 0.0};
    if (s.is_on == 0 || kind == cut_kind::top_k) return s;
    const weight_search k = at_level(cut_kind::top_k, bin_levels);
    double mass = 0;
    if (k.is_on != 0) {
      mass = k.mass_above + static_cast<double>(bits_to_f32(k.edge)) * k.kept_ties;
    } else {
      const row_histogram& all = step.histogram(row, kind, 1);
      mass = team.template sum_in_order<bin_tally>(
                     n_bins, [&](const std::int32_t i) { return bin(all, s, 1, i); })
                 .mass;
    }
    const double quantum = mass_quantum(step.batch.vocab);
    const double wanted = ::ceil(static_cast<double>(params.top_p) * mass / quantum) * quantum;
    s.wanted_mass = wanted < quantum ? quantum : wanted;
    return s;
  }

  /// The state of the search after the histogram of level `level` of the bins (weight_bins.hpp).
  /// Earlier launches have stored the states of the levels before.
  KOKKOS_INLINE_FUNCTION weight_search at_level(cut_kind kind, int level) const {
    if (!step.has(kind, params)) return {};
    const weight_search before =
        level == 1 ? begun(kind) : step.progress[row].search[static_cast<int>(kind)][level - 2];
    return narrowed(kind, before, level);
  }
};

} // namespace twill::gpu::detail
