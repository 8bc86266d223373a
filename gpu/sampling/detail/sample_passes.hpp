// The two ways to walk a row when sampling: one host thread, or a team.
#pragma once

#include <cstdint>

#include "gpu/detail/kernel_math.hpp"
#include "gpu/sampling/host/row_passes.hpp"

namespace twill::gpu::detail {

struct host_passes {
  template <class F>
  void single(const F& f) const {
    f();
  }
  template <class F>
  void each(std::int32_t n, const F& f) const {
    for (std::int32_t i = 0; i < n; ++i)
      f(i);
  }
  std::int32_t argmax(const float* x, std::int32_t n) const { return host::argmax(x, n); }
  float largest(const float* x, std::int32_t n) const { return host::largest(x, n); }
  double sum_exp(const float* x, std::int32_t n, float max) const {
    return host::sum_exp(x, n, max);
  }
  void to_weights(float* x, std::int32_t n, float max, float inverse_temperature) const {
    host::to_weights(x, n, max, inverse_temperature);
  }
  host::weight_tally tally(const float* w, std::int32_t n, const float (&t)[3],
                           bool with_mass) const {
    return host::tally(w, n, t, with_mass);
  }
  double mass_of(const float* w, std::int32_t n, host::weight_cut cut) const {
    return host::mass_of(w, n, cut);
  }
  std::int32_t draw(const float* w, std::int32_t n, host::weight_cut cut, double target) const {
    return host::draw(w, n, cut, target);
  }
  std::int32_t nth_equal(const float* w, std::int32_t n, float value, std::int32_t nth) const {
    return host::nth_equal(w, n, value, nth);
  }
  std::int32_t next_largest(const float* x, std::int32_t n, float value, std::int32_t id) const {
    return host::next_largest(x, n, value, id);
  }
};

/// Every member is called by all lanes of the team together and gives all of them its result.
struct team_passes {
  const team_member& team;

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
  KOKKOS_INLINE_FUNCTION float largest(const float* x, std::int32_t n) const {
    const std::int32_t id = argmax(x, n);
    return id < 0 ? -INFINITY : x[id];
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
    constexpr std::int32_t block_len = 1024;
    double before = 0;
    std::int32_t last = -1;
    for (std::int32_t begin = 0; begin < n; begin += block_len) {
      const std::int32_t end = n - begin < block_len ? n : begin + block_len;
      const double mass = mass_between(w, begin, end, cut);
      const bool here = before + mass > target;
      if (here || mass > 0) { // every lane walks the block alike
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

} // namespace twill::gpu::detail
