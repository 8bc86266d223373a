#include "tests/actors/meaning/plain_draw.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace twill::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// Values in device memory.
template <class T>
class on_device {
public:
  on_device(gpu::device& dev, const std::vector<T>& values)
      : memory_(dev.allocate(std::max<std::size_t>(1, values.size() * sizeof(T)), "test").value()) {
    dev.upload(memory_.data(), values.data(), values.size() * sizeof(T));
  }
  T* data() const { return static_cast<T*>(memory_.data()); }

private:
  gpu::buffer memory_;
};

} // namespace

std::vector<double> log_probabilities(const std::vector<float>& logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits)
    sum += std::exp(double{x} - top);
  std::vector<double> all;
  for (const float x : logits)
    all.push_back(double{x} - top - std::log(sum));
  return all;
}

std::vector<std::int32_t> likeliest(const std::vector<float>& logits, std::size_t n) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  order.resize(std::min(n, order.size()));
  return order;
}

bool plain_draw::masked(std::size_t id) const {
  return !mask.empty() && (mask[id / 32] >> (id % 32) & 1) == 0;
}

/// Logits after mask, biases, bans and penalties, in double.
std::vector<double> plain_draw::edited(const std::vector<float>& logits) const {
  std::vector<double> x(logits.begin(), logits.end());
  for (std::size_t id = 0; id < x.size(); ++id)
    if (masked(id)) x[id] = -inf;
  for (const auto& b : biases)
    x[static_cast<std::size_t>(b.id)] += double{b.bias};
  for (const auto& c : counts) {
    double& at = x[static_cast<std::size_t>(c.id)];
    const double repetition = params->repetition_penalty;
    at = at > 0 ? at / repetition : at * repetition;
    if (c.in_output > 0)
      at -= double{params->presence_penalty} + double{params->frequency_penalty} * c.in_output;
  }
  return x;
}

std::string plain_draw::refuses(const std::vector<float>& logits, std::int32_t token) const {
  constexpr double slack = 1e-4;
  const auto x = edited(logits);
  const double mine = x[static_cast<std::size_t>(token)];
  const double top = *std::max_element(x.begin(), x.end());
  if (std::isinf(top)) // all tokens are banned: only the mask counts
    return masked(static_cast<std::size_t>(token)) ? "the mask excludes it" : "";
  if (std::isinf(mine)) return "it is banned";
  if (config::is_greedy(*params) || params->top_k == 1)
    return mine < top - slack ? "another one is likelier" : "";
  const auto larger = std::count_if(x.begin(), x.end(), [&](double v) { return v > mine + slack; });
  if (params->top_k > 0 && larger >= params->top_k) return "top_k leaves it out";
  const auto weight = [&](double v) { return std::exp((v - top) / double{params->temperature}); };
  if (weight(mine) < double{params->min_p} * (1 - 1e-3)) return "min_p leaves it out";
  std::vector<double> kept;
  for (const double v : x)
    if (weight(v) >= double{params->min_p}) kept.push_back(weight(v));
  std::sort(kept.rbegin(), kept.rend());
  if (params->top_k > 0)
    kept.resize(std::min(kept.size(), static_cast<std::size_t>(params->top_k)));
  double above = 0;
  for (const double w : kept)
    if (w > weight(mine + slack)) above += w;
  const double all = std::accumulate(kept.begin(), kept.end(), 0.0);
  return above > double{params->top_p} * all * (1 + 1e-4) ? "top_p leaves it out" : "";
}

std::int32_t plain_draw::token_of(gpu::device& dev, const std::vector<float>& logits) const {
  gpu::sample_row row;
  row.temperature = config::is_greedy(*params) ? 0 : params->temperature;
  row.top_k = std::max(params->top_k, 0);
  row.top_p = params->top_p;
  row.min_p = params->min_p;
  row.repetition_penalty = params->repetition_penalty;
  row.presence_penalty = params->presence_penalty;
  row.frequency_penalty = params->frequency_penalty;
  row.seed = seed;
  row.counter = position;
  const on_device count_list(dev, counts);
  const on_device bias_list(dev, biases);
  const on_device bits(dev, mask);
  row.counts = count_list.data();
  row.n_counts = static_cast<std::int32_t>(counts.size());
  row.biases = bias_list.data();
  row.n_biases = static_cast<std::int32_t>(biases.size());
  if (!mask.empty()) row.mask = bits.data();
  const on_device x(dev, logits);
  const on_device rows(dev, std::vector<gpu::sample_row>{row});
  const on_device token(dev, std::vector<std::int32_t>{-1});
  gpu::sample_args args;
  args.logits =
      gpu::view_2d(x.data(), gpu::dtype::f32, 1, static_cast<std::int64_t>(logits.size()));
  args.rows = rows.data();
  args.tokens = token.data();
  gpu::sample(dev, args);
  dev.fence();
  std::int32_t drawn = -1;
  dev.download(&drawn, token.data(), sizeof drawn);
  return drawn;
}

} // namespace twill::test
