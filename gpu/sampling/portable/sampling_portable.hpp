// sampling's portable form: Kokkos kernels with one team per row.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "gpu/detail/sampling_backend.hpp"
#include "gpu/portable/launch.hpp"
#include "gpu/sampling/detail/sample_row.hpp"

namespace twill::gpu::detail {

/// Teams that hold a copy of their row at a time; bounds the memory of the copies.
inline constexpr long copies_at_once = 128;

/// The passes over a row as a team does them. All lanes call each member together, and all get its
/// result.
template <class Member>
struct team_passes {
  const Member& team;

  /// An unsigned image of (x, id) that orders by value, then by lower id; 0 for NaN and -infinity.
  KOKKOS_INLINE_FUNCTION static std::uint64_t rank_of(float x, std::int32_t id) {
    if (!(x > -INFINITY)) return 0;
    const std::uint32_t bits = f32_to_bits(x + 0.0f); // one zero
    const std::uint32_t image = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (std::uint64_t{image} << 32) | (0xffffffffu - static_cast<std::uint32_t>(id));
  }
  KOKKOS_INLINE_FUNCTION static std::int32_t id_of(std::uint64_t rank) {
    return rank == 0 ? -1
                     : static_cast<std::int32_t>(0xffffffffu - static_cast<std::uint32_t>(rank));
  }
  KOKKOS_INLINE_FUNCTION static float value_of(std::uint64_t rank) {
    if (rank == 0) return -INFINITY;
    const auto image = static_cast<std::uint32_t>(rank >> 32);
    return bits_to_f32(image & 0x80000000u ? image & 0x7fffffffu : ~image);
  }
  KOKKOS_INLINE_FUNCTION static bool takes_part(float w, std::int32_t i, host::weight_cut cut) {
    return w > cut.threshold || (w == cut.threshold && i <= cut.last_tie);
  }
  template <class F>
  KOKKOS_INLINE_FUNCTION std::uint64_t top_rank(std::int32_t n, const F& f) const {
    std::uint64_t best = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, n),
        [&](const int i, std::uint64_t& part) {
          const std::uint64_t rank = f(i);
          part = rank > part ? rank : part;
        },
        Kokkos::Max<std::uint64_t>(best));
    return best;
  }
  template <class Sum, class F>
  KOKKOS_INLINE_FUNCTION Sum sum_over(std::int32_t n, const F& f) const {
    Sum sum = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, n), [&](const int i, Sum& part) { part += f(i); }, sum);
    return sum;
  }

  template <class F>
  KOKKOS_INLINE_FUNCTION void single(const F& f) const {
    team.team_barrier();
    Kokkos::single(Kokkos::PerTeam(team), f);
    team.team_barrier();
  }
  template <class F>
  KOKKOS_INLINE_FUNCTION void each(std::int32_t n, const F& f) const {
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, n), f);
    team.team_barrier();
  }
  KOKKOS_INLINE_FUNCTION std::int32_t argmax(const float* x, std::int32_t n) const {
    return id_of(top_rank(n, [&](const int i) { return rank_of(x[i], i); }));
  }
  /// The value comes out of its rank: a lane that is ahead may already overwrite x.
  KOKKOS_INLINE_FUNCTION float largest(const float* x, std::int32_t n) const {
    return value_of(top_rank(n, [&](const int i) { return rank_of(x[i], i); }));
  }
  KOKKOS_INLINE_FUNCTION double sum_exp(const float* x, std::int32_t n, float max) const {
    return sum_over<double>(n, [&](const int i) {
      const float e = ::expf(x[i] - max);
      return e == e ? static_cast<double>(e) : 0.0;
    });
  }
  KOKKOS_INLINE_FUNCTION void to_weights(float* x, std::int32_t n, float max,
                                         float inverse_temperature) const {
    each(n, [&](const std::int32_t i) {
      const float e = ::expf((x[i] - max) * inverse_temperature);
      x[i] = e == e ? e : 0.0f;
    });
  }
  KOKKOS_INLINE_FUNCTION host::weight_tally tally(const float* w, std::int32_t n,
                                                  const float (&t)[3], bool with_mass) const {
    host::weight_tally result = {};
    for (int k = 0; k < 3; ++k) {
      const float least = t[k];
      result.count[k] = sum_over<std::int32_t>(n, [&](const int i) { return w[i] >= least; });
      if (with_mass)
        result.mass[k] = sum_over<double>(
            n, [&](const int i) { return w[i] >= least ? static_cast<double>(w[i]) : 0.0; });
    }
    return result;
  }
  KOKKOS_INLINE_FUNCTION double mass_of(const float* w, std::int32_t n,
                                        host::weight_cut cut) const {
    return mass_between(w, 0, n, cut);
  }
  KOKKOS_INLINE_FUNCTION double mass_between(const float* w, std::int32_t begin, std::int32_t end,
                                             host::weight_cut cut) const {
    return sum_over<double>(end - begin, [&](const int i) {
      return takes_part(w[begin + i], begin + i, cut) ? static_cast<double>(w[begin + i]) : 0.0;
    });
  }
  KOKKOS_INLINE_FUNCTION std::int32_t draw(const float* w, std::int32_t n, host::weight_cut cut,
                                           double target) const {
    constexpr std::int32_t run_len = 1024;
    double before = 0;
    std::int32_t last = -1;
    for (std::int32_t begin = 0; begin < n; begin += run_len) {
      const std::int32_t end = n - begin < run_len ? n : begin + run_len;
      const double mass = mass_between(w, begin, end, cut);
      const bool here = before + mass > target;
      if (here || mass > 0) { // every lane walks the run alike
        double running = before;
        for (std::int32_t i = begin; i < end; ++i) {
          if (!takes_part(w[i], i, cut)) continue;
          last = i;
          running += static_cast<double>(w[i]);
          if (here && running > target) return i;
        }
        if (here) return last;
      }
      before += mass;
    }
    return last;
  }
  KOKKOS_INLINE_FUNCTION std::int32_t nth_equal(const float* w, std::int32_t n, float value,
                                                std::int32_t nth) const {
    for (std::int32_t i = 0; i < n; ++i)
      if (w[i] == value && --nth == 0) return i;
    return n - 1;
  }
  KOKKOS_INLINE_FUNCTION std::int32_t next_largest(const float* x, std::int32_t n, float value,
                                                   std::int32_t id) const {
    return id_of(top_rank(n, [&](const int i) {
      return x[i] < value || (x[i] == value && i > id) ? rank_of(x[i], i) : std::uint64_t{0};
    }));
  }
};

template <class Member>
struct sample_team {
  sample_batch batch;
  long copies; ///< rows c, c + copies, c + 2 * copies, ... share copy buffer c
  float* raw;  ///< (copies, vocab), or null

  KOKKOS_INLINE_FUNCTION void operator()(const Member& team) const {
    const team_passes<Member> passes{team};
    const long copy = team.league_rank();
    for (long r = copy; r < batch.rows; r += copies)
      sample_one(passes, batch, r, raw == nullptr ? nullptr : raw + copy * batch.vocab);
  }
};

template <class Member>
struct argmax_team {
  const float* logits;
  long stride;
  std::int32_t vocab;
  std::int32_t* tokens;

  KOKKOS_INLINE_FUNCTION void operator()(const Member& team) const {
    const team_passes<Member> passes{team};
    const std::int32_t id = passes.argmax(logits + team.league_rank() * stride, vocab);
    passes.single([&] { tokens[team.league_rank()] = id < 0 ? 0 : id; });
  }
};

template <class Member>
struct token_logprobs_team {
  const float* logits;
  long stride;
  std::int32_t vocab;
  const std::int32_t* ids;
  float* logprobs;

  KOKKOS_INLINE_FUNCTION void operator()(const Member& team) const {
    const long r = team.league_rank();
    token_logprob(team_passes<Member>{team}, logits + r * stride, vocab, ids[r], logprobs + r);
  }
};

template <class Launch>
struct sampling_portable {
  using member = typename Launch::member;

  static void sample(device& dev, const sample_args& args) {
    const sample_batch batch = batch_of(args);
    const long copies = args.any_logprobs ? std::min(batch.rows, copies_at_once) : batch.rows;
    float* raw = nullptr;
    if (args.any_logprobs)
      raw = static_cast<float*>(
          dev.scratch(static_cast<std::size_t>(copies * batch.vocab) * sizeof(float)));
    Launch::teams(dev, "sample", copies, sample_team<member>{batch, copies, raw});
  }

  static void argmax(device& dev, const tensor_ref& logits, std::int32_t* tokens) {
    Launch::teams(dev, "argmax", logits.shape[0],
                  argmax_team<member>{logits.as<const float>(),
                                      static_cast<long>(logits.row_stride),
                                      static_cast<std::int32_t>(logits.shape[1]), tokens});
  }

  static void token_logprobs(device& dev, const tensor_ref& logits, const std::int32_t* ids,
                             float* logprobs) {
    Launch::teams(
        dev, "token_logprobs", logits.shape[0],
        token_logprobs_team<member>{logits.as<const float>(), static_cast<long>(logits.row_stride),
                                    static_cast<std::int32_t>(logits.shape[1]), ids, logprobs});
  }

  static constexpr sampling_backend table{sample, argmax, token_logprobs};
};

} // namespace twill::gpu::detail
