#include "gpu/sampling/host/row_passes.hpp"

#define TWILL_LANES 8
#include "gpu/host/simd.hpp"

namespace twill::gpu::host {

namespace {

constexpr std::int32_t run_len = 1024;

/// The best value and its id in each lane; the lower id wins a tie.
struct best_entry {
  vf value = splat(minus_infinity);
  vi id = splat_int(-1);

  void see(vf x, vi ids) {
    const vi better = x > value;
    value = better ? x : value;
    id = better ? ids : id;
  }
  std::int32_t winner() const {
    std::int32_t best = -1;
    float top = minus_infinity;
    for (int l = 0; l < lanes; ++l) {
      if (id[l] < 0 || value[l] < top || (value[l] == top && best >= 0 && id[l] > best)) continue;
      top = value[l];
      best = id[l];
    }
    return best;
  }
};

inline vi first_ids() {
  return __builtin_convertvector(iota(), vi);
}

/// Calls f(vector, ids of its lanes) over the row; lanes past the end hold `absent`.
template <class F>
inline void for_vectors(const float* x, std::int32_t n, float absent, const F& f) {
  vi ids = first_ids();
  std::int32_t i = 0;
  for (; i + lanes <= n; i += lanes, ids += lanes)
    f(load(x + i), ids);
  if (i == n) return;
  vf rest = splat(absent);
  for (int l = 0; i + l < n; ++l)
    rest[l] = x[i + l];
  f(rest, ids);
}

/// Sum of term(vector, ids) over the row, in f64 across runs of run_len entries.
template <class F>
inline double sum_runs(const float* x, std::int32_t n, float absent, const F& term) {
  double total = 0;
  for (std::int32_t begin = 0; begin < n; begin += run_len) {
    const std::int32_t len = n - begin < run_len ? n - begin : run_len;
    vf even = {}, odd = {};
    bool second = false;
    for_vectors(x + begin, len, absent, [&](vf v, vi ids) {
      const vf t = term(v, ids + begin);
      if (second)
        odd += t;
      else
        even += t;
      second = !second;
    });
    total += static_cast<double>(sum_of(even + odd));
  }
  return total;
}

inline vf kept(vf weight, vi ids, weight_cut cut) {
  const vf threshold = splat(cut.threshold);
  const vi in = (weight > threshold) | ((weight == threshold) & (ids <= splat_int(cut.last_tie)));
  return in ? weight : vf{};
}

inline std::int32_t sum_of_ints(vi v) {
  std::int32_t sum = 0;
  for (int l = 0; l < lanes; ++l)
    sum += v[l];
  return sum;
}

} // namespace

std::int32_t argmax(const float* x, std::int32_t n) {
  // Two independent chains of compare and select, which hide the latency of a single chain.
  best_entry even, odd;
  vi ids = first_ids();
  std::int32_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes, ids += 2 * lanes) {
    even.see(load(x + i), ids);
    odd.see(load(x + i + lanes), ids + lanes);
  }
  std::int32_t best = even.winner();
  const auto consider = [&](std::int32_t id) {
    if (id < 0 || !(x[id] > minus_infinity)) return;
    if (best < 0 || x[id] > x[best] || (x[id] == x[best] && id < best)) best = id;
  };
  consider(odd.winner());
  for (; i < n; ++i)
    consider(i);
  return best;
}

float largest(const float* x, std::int32_t n) {
  vf even = splat(minus_infinity), odd = even;
  std::int32_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    even = max_of(load(x + i), even);
    odd = max_of(load(x + i + lanes), odd);
  }
  float best = largest(max_of(even, odd));
  for (; i < n; ++i)
    best = x[i] > best ? x[i] : best;
  return best;
}

double sum_exp(const float* x, std::int32_t n, float max) {
  return sum_runs(x, n, minus_infinity, [&](vf v, vi) {
    const vf e = exp_of(v - max);
    return e == e ? e : vf{};
  });
}

void to_weights(float* x, std::int32_t n, float max, float inverse_temperature) {
  const auto weight = [&](vf v) {
    const vf e = exp_of((v - max) * inverse_temperature);
    return e == e ? e : vf{};
  };
  std::int32_t i = 0;
  for (; i + lanes <= n; i += lanes)
    store(x + i, weight(load(x + i)));
  for (; i < n; ++i)
    x[i] = weight(splat(x[i]))[0];
}

weight_tally tally(const float* weights, std::int32_t n, const float (&thresholds)[3],
                   bool with_mass) {
  const vf t0 = splat(thresholds[0]), t1 = splat(thresholds[1]), t2 = splat(thresholds[2]);
  vi c0 = {}, c1 = {}, c2 = {};
  weight_tally result = {};
  if (!with_mass) {
    for_vectors(weights, n, -1.0f, [&](vf w, vi) {
      c0 -= w >= t0; // true is -1
      c1 -= w >= t1;
      c2 -= w >= t2;
    });
  }
  for (std::int32_t begin = 0; with_mass && begin < n; begin += run_len) {
    vf m0 = {}, m1 = {}, m2 = {};
    const std::int32_t len = n - begin < run_len ? n - begin : run_len;
    for_vectors(weights + begin, len, -1.0f, [&](vf w, vi) {
      const vi in0 = w >= t0, in1 = w >= t1, in2 = w >= t2;
      c0 -= in0;
      c1 -= in1;
      c2 -= in2;
      m0 += in0 ? w : vf{};
      m1 += in1 ? w : vf{};
      m2 += in2 ? w : vf{};
    });
    result.mass[0] += static_cast<double>(sum_of(m0));
    result.mass[1] += static_cast<double>(sum_of(m1));
    result.mass[2] += static_cast<double>(sum_of(m2));
  }
  result.count[0] = sum_of_ints(c0);
  result.count[1] = sum_of_ints(c1);
  result.count[2] = sum_of_ints(c2);
  return result;
}

double mass_of(const float* weights, std::int32_t n, weight_cut cut) {
  return sum_runs(weights, n, 0.0f, [&](vf w, vi ids) { return kept(w, ids, cut); });
}

std::int32_t draw(const float* weights, std::int32_t n, weight_cut cut, double target) {
  const auto takes_part = [&](std::int32_t i) {
    return weights[i] > cut.threshold || (weights[i] == cut.threshold && i <= cut.last_tie);
  };
  double before = 0;
  for (std::int32_t begin = 0; begin < n; begin += run_len) {
    const std::int32_t len = n - begin < run_len ? n - begin : run_len;
    const double mass = mass_of(weights + begin, len, {cut.threshold, cut.last_tie - begin});
    if (before + mass > target) {
      double running = before;
      std::int32_t last = -1;
      for (std::int32_t i = begin; i < begin + len; ++i) {
        if (!takes_part(i)) continue;
        last = i;
        running += static_cast<double>(weights[i]);
        if (running > target) return i;
      }
      if (last >= 0) return last;
    }
    before += mass;
  }
  for (std::int32_t i = n - 1; i >= 0; --i)
    if (takes_part(i)) return i;
  return -1;
}

std::int32_t nth_equal(const float* weights, std::int32_t n, float value, std::int32_t nth) {
  for (std::int32_t i = 0; i < n; ++i)
    if (weights[i] == value && --nth == 0) return i;
  return n - 1;
}

std::int32_t next_largest(const float* x, std::int32_t n, float value, std::int32_t id) {
  best_entry best;
  for_vectors(x, n, minus_infinity, [&](vf v, vi ids) {
    const vi after = (v < splat(value)) | ((v == splat(value)) & (ids > splat_int(id)));
    best.see(after ? v : splat(minus_infinity), ids);
  });
  return best.winner();
}

} // namespace twill::gpu::host
