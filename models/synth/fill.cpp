#include "models/synth/fill.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "models/checkpoint/half.hpp"
#include "models/synth/narrow.hpp"
#include "models/synth/random.hpp"

namespace twill::models::synth {
namespace {

constexpr std::size_t table_size = 4096; // 12 bits of randomness per value
constexpr std::uint64_t table_mask = table_size - 1;
constexpr std::int64_t lanes = 4; // values per random word

/// Quantile of the normal distribution at p < 1/2 (Acklam's rational approximation, 1e-9 relative).
double lower_quantile(double p) {
  constexpr double split = 0.02425;
  if (p < split) {
    const double q = std::sqrt(-2 * std::log(p));
    return (((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q - 2.400758277161838) * q -
              2.549732539343734) *
                 q +
             4.374664141464968) *
                q +
            2.938163982698783) /
           ((((7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996) * q +
             3.754408661907416) *
                q +
            1);
  }
  const double q = p - 0.5, r = q * q;
  return (((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r +
            1.383577518672690e+02) *
               r -
           3.066479806614716e+01) *
              r +
          2.506628277459239) *
         q /
         (((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r +
            6.680131188771972e+01) *
               r -
           1.328068155288572e+01) *
              r +
          1);
}

const std::array<double, table_size>& quantiles() {
  static const std::array<double, table_size> all = [] {
    std::array<double, table_size> z{};
    for (std::size_t i = 0; i < table_size / 2; ++i) {
      z[i] = lower_quantile((static_cast<double>(i) + 0.5) / table_size);
      z[table_size - 1 - i] = -z[i];
    }
    return z;
  }();
  return all;
}

std::uint16_t narrow(element type, float x) {
  return type == element::f16 ? narrow_f16(x) : narrow_bf16(x);
}

} // namespace

tensor_filler::tensor_filler(const planned_tensor& tensor, std::uint64_t seed)
    : tensor_(tensor), key_(stream_key(seed, tensor.name)), seed_(seed) {
  if (tensor_.kind != content::normal) return;
  const bool wide = tensor_.type == element::f32;
  if (wide)
    table32_.reserve(table_size);
  else
    table16_.reserve(table_size);
  for (const double z : quantiles()) {
    const auto x = static_cast<float>(tensor_.mean + tensor_.deviation * z);
    if (wide)
      table32_.push_back(x);
    else
      table16_.push_back(narrow(tensor_.type, x));
  }
}

template <class T>
void tensor_filler::fill_normal(const std::vector<T>& table, std::int64_t first, std::int64_t n,
                                T* out) const {
  const T* values = table.data();
  const auto at = [&](std::int64_t i) {
    const std::uint64_t word = random_word(key_, static_cast<std::uint64_t>(i / lanes));
    return values[(word >> (16 * (i % lanes))) & table_mask];
  };
  const std::int64_t end = first + n;
  std::int64_t i = first;
  for (; i < end && i % lanes != 0; ++i)
    *out++ = at(i);
  for (; i + lanes <= end; i += lanes, out += lanes) {
    const std::uint64_t word = random_word(key_, static_cast<std::uint64_t>(i / lanes));
    out[0] = values[word & table_mask];
    out[1] = values[(word >> 16) & table_mask];
    out[2] = values[(word >> 32) & table_mask];
    out[3] = values[(word >> 48) & table_mask];
  }
  for (; i < end; ++i)
    *out++ = at(i);
}

void tensor_filler::fill(std::int64_t first, std::int64_t n, std::byte* out) const {
  const std::int64_t width = tensor_.row_values();
  switch (tensor_.kind) {
  case content::normal:
    if (tensor_.type == element::f32)
      fill_normal(table32_, first * width, n * width, reinterpret_cast<float*>(out));
    else
      fill_normal(table16_, first * width, n * width, reinterpret_cast<std::uint16_t*>(out));
    return;
  case content::frequencies:
    for (std::int64_t i = first; i < first + n; ++i) {
      const auto x = static_cast<float>(
          std::pow(tensor_.mean, -static_cast<double>(i) / static_cast<double>(tensor_.rows())));
      const std::uint16_t half = narrow(tensor_.type, x);
      if (tensor_.type == element::f32)
        std::memcpy(out + (i - first) * 4, &x, 4);
      else
        std::memcpy(out + (i - first) * 2, &half, 2);
    }
    return;
  case content::codes:
    return module_source(*tensor_.module, seed_)
        .fill_codes(first, n, reinterpret_cast<std::uint32_t*>(out));
  case content::zeros:
    return module_source(*tensor_.module, seed_)
        .fill_zeros(first, n, reinterpret_cast<std::uint32_t*>(out));
  case content::scales:
    return module_source(*tensor_.module, seed_)
        .fill_scales(first, n, reinterpret_cast<std::uint16_t*>(out));
  case content::group_index: {
    const auto all = module_source(*tensor_.module, seed_).group_index();
    std::memcpy(out, all.data() + first, static_cast<std::size_t>(n) * 4);
    return;
  }
  }
}

void widen(element type, const std::byte* values, std::int64_t n, float* out) {
  if (type == element::f32) {
    std::memcpy(out, values, static_cast<std::size_t>(n) * sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, values + 2 * i, sizeof bits);
    out[i] = type == element::f16 ? widen_f16(bits) : widen_bf16(bits);
  }
}

std::vector<float> values_of(const planned_tensor& tensor, std::uint64_t seed) {
  const std::int64_t n = tensor.rows() * tensor.row_values();
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes()));
  tensor_filler(tensor, seed).fill(0, tensor.rows(), bytes.data());
  std::vector<float> values(static_cast<std::size_t>(n));
  widen(tensor.type, bytes.data(), n, values.data());
  return values;
}

} // namespace twill::models::synth
