// draw_team: the last of the kernels that sample tokens. One team per row finds the id of the row's
// token from the results that the kernels of sample_kernels.hpp have stored for the row's parts
// (part_len logits each), and reports log-probabilities.
#pragma once

#include <cstdint>

#include "gpu/detail/philox.hpp"
#include "gpu/sampling/portable/sample_step.hpp"
#include "gpu/sampling/portable/team_row.hpp"

namespace twill::gpu::detail {

/// One team for a row.
template <class Member>
struct draw_team {
  sample_step step;

  KOKKOS_INLINE_FUNCTION void operator()(const Member& member) const {
    const team_row<Member> team{
        member, member.team_shmem().get_shmem(static_cast<int>(team_row<Member>::scratch_bytes))};
    const long r = member.league_rank();
    const sample_row row = step.batch.params[r];
    const long first = step.first_part(r);
    const bool drawn = step.draws(row) && step.progress[r].is_drawn != 0;
    std::int32_t id =
        drawn ? draw(team, r, row) : id_of(team.top_rank(step.best + first, step.parts));
    if (id < 0) id = last_resort(team, row, step.fallbacks + first);
    const bool reports = step.batch.reports(row);
    const float logprob = reports ? report(team, r, row, id) : 0;
    team.single([&] {
      step.batch.tokens[r] = id;
      if (reports) step.batch.logprobs[r] = logprob;
    });
  }

  KOKKOS_INLINE_FUNCTION std::int32_t draw(const team_row<Member>& team, long r,
                                           const sample_row& row) const {
    const long first = step.first_part(r);
    const std::uint64_t* masses = step.masses + first;
    const std::int32_t* ties = step.ties + first;
    const float* weights = step.logits_of(r);
    const std::uint32_t threshold = step.progress[r].threshold;
    const std::int32_t kept = step.progress[r].kept_ties;
    const mass_units units(step.batch.vocab);
    const auto is_tie = [&](std::int32_t i) { return f32_to_bits(weights[i]) == threshold; };

    // A tie is a weight that equals the threshold. Only the first `kept` ties take part in the
    // draw. The code below finds the part that holds the last kept tie, how many ties are kept in
    // this part, and the tie's id.
    using counted = passing<std::int32_t>;
    const auto reaches = [&](std::int32_t before) {
      return [=](const std::int32_t& sum) { return sum >= kept - before; };
    };
    counted tied = team.template first_past<std::int32_t>(
        step.parts, [&](const std::int32_t p) { return ties[p]; }, reaches(0));
    std::int32_t last_tie = every_tie;
    if (tied.index >= 0) {
      const std::int32_t begin = tied.index * part_len;
      const counted in_part = team.template first_past<std::int32_t>(
          len_of(tied.index), [&](const std::int32_t i) { return is_tie(begin + i) ? 1 : 0; },
          reaches(tied.before));
      last_tie = begin + in_part.index;
    }
    const auto kept_in = [&](std::int32_t p) {
      if (tied.index < 0 || p < tied.index) return ties[p];
      return p == tied.index ? kept - tied.before : 0;
    };
    const auto part_mass = [&](std::int32_t p) {
      return masses[p] + units(threshold) * static_cast<std::uint64_t>(kept_in(p));
    };
    const auto mass = [&](std::int32_t i) -> std::uint64_t {
      const std::uint32_t bits = f32_to_bits(weights[i]);
      return bits > threshold || (bits == threshold && i <= last_tie) ? units(bits) : 0;
    };
    const auto all = team.template sum_in_order<std::uint64_t>(step.parts, part_mass);
    const auto scaled =
        static_cast<std::uint64_t>(uniform(row.seed, row.counter) * static_cast<double>(all));
    const std::uint64_t target = scaled < all ? scaled : all - 1;
    const passing<std::uint64_t> in = team.template first_past<std::uint64_t>(
        step.parts, part_mass, [&](const std::uint64_t& sum) { return sum > target; });
    if (in.index < 0) return -1;
    const std::int32_t begin = in.index * part_len;
    const passing<std::uint64_t> at = team.template first_past<std::uint64_t>(
        len_of(in.index), [&](const std::int32_t i) { return mass(begin + i); },
        [&](const std::uint64_t& sum) { return sum > target - in.before; });
    return at.index < 0 ? -1 : begin + at.index;
  }

  KOKKOS_INLINE_FUNCTION std::int32_t len_of(std::int32_t part) const {
    const std::int32_t left = step.batch.vocab - part * part_len;
    return left < part_len ? left : part_len;
  }

  /// The id with the largest logit before biases among the tokens that the mask allows; if there is
  /// none, the lowest id that the mask allows, or 0.
  KOKKOS_INLINE_FUNCTION std::int32_t last_resort(const team_row<Member>& team,
                                                  const sample_row& row,
                                                  const std::uint64_t* fallbacks) const {
    const std::int32_t id = id_of(team.top_rank(fallbacks, step.parts));
    if (id >= 0 || row.mask == nullptr) return id < 0 ? 0 : id;
    const std::int32_t n = step.batch.vocab;
    const auto lets = [&](std::int32_t i) { return (row.mask[i / 32] >> (i % 32) & 1u) != 0; };
    const std::int32_t allowed = id_of(team.top_rank(
        n, [&](const int i) { return lets(i) ? rank_of(0.0f, i) : std::uint64_t{0}; }));
    return allowed < 0 ? 0 : allowed;
  }

  /// Stores the likeliest alternatives, and returns the chosen id's log-probability.
  KOKKOS_INLINE_FUNCTION float report(const team_row<Member>& team, long r, const sample_row& row,
                                      std::int32_t id) const {
    const long first = step.first_part(r);
    const std::uint64_t* entries = step.top_entries + first * step.tops;
    const std::int32_t asked = step.batch.tops(row), kept = asked > 1 ? asked : 1;
    const float max = value_of(team.top_rank(entries, step.parts, step.tops));
    const double* sums = step.sums + first;
    const double log_sum = log_of_sum(team.template sum_in_order<double>(
        step.parts, [&](const std::int32_t p) { return sums[p]; }));
    std::uint64_t last = ~std::uint64_t{0};
    for (std::int32_t k = 0; k < asked; ++k) {
      last = team.top_rank(step.parts * kept, [&](const int i) {
        const std::int32_t part = i / kept;
        const std::uint64_t rank = entries[std::int64_t{part} * step.tops + (i - part * kept)];
        return rank < last ? rank : std::uint64_t{0};
      });
      team.single([&] {
        step.batch.top_ids[r * step.batch.max_top + k] = id_of(last);
        step.batch.top_logprobs[r * step.batch.max_top + k] =
            log_probability(value_of(last), max, log_sum);
      });
    }
    return log_probability(step.original_of(r, row)[id], max, log_sum);
  }
};

} // namespace twill::gpu::detail
