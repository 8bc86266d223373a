#include "tools/twill-bench/accuracy/divergence.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace twill::bench {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
}

double perplexity_of(double nll_sum, std::int64_t n) {
  return n == 0 ? 1 : std::exp(nll_sum / static_cast<double>(n));
}

/// KL(reference || other), given the log_sum_exp() of both rows.
double kl_divergence(std::span<const float> reference, double log_p, std::span<const float> other,
                     double log_q) {
  // The sum of p ln(p/q) - p + q, whose terms are never negative. In the plain sum of p ln(p/q),
  // terms of opposite sign cancel, so that for similar rows only rounding errors of either sign
  // would remain.
  double sum = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const double a = reference[i] - log_p, b = other[i] - log_q;
    const double p = std::exp(a);
    sum += p > 0 ? p * (a - b + std::expm1(b - a)) : std::exp(b);
  }
  return std::max(sum, 0.0);
}

} // namespace

double log_sum_exp(std::span<const float> row) {
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float x : row)
    sum += std::exp(x - largest);
  return largest + std::log(sum);
}

std::int32_t argmax(std::span<const float> row) {
  return static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

double kl_divergence(std::span<const float> reference, std::span<const float> other) {
  return kl_divergence(reference, log_sum_exp(reference), other, log_sum_exp(other));
}

void tally::add(std::span<const float> reference, std::span<const float> row, std::int32_t next,
                bool is_greedy) {
  const auto at = static_cast<std::size_t>(next);
  const std::int32_t likeliest = argmax(row);
  const double log_p = log_sum_exp(reference), log_q = log_sum_exp(row);
  const double kl = kl_divergence(reference, log_p, row, log_q);
  ++positions_;
  if (likeliest == argmax(reference)) ++same_;
  if (is_greedy) ++greedy_;
  if (is_greedy && likeliest == next) ++greedy_found_;
  kl_sum_ += kl;
  if (!(kl <= max_kl_)) max_kl_ = kl; // written so that a NaN is kept, too
  nll_sum_ += log_q - row[at];
  reference_nll_sum_ += log_p - reference[at];
}

double tally::same_argmax() const {
  return share(same_, positions_);
}

double tally::greedy_found() const {
  return share(greedy_found_, greedy_);
}

double tally::mean_kl() const {
  return positions_ == 0 ? 0 : kl_sum_ / static_cast<double>(positions_);
}

double tally::perplexity() const {
  return perplexity_of(nll_sum_, positions_);
}

double tally::reference_perplexity() const {
  return perplexity_of(reference_nll_sum_, positions_);
}

} // namespace twill::bench
