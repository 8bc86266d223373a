// divergence: how far one row of logits is from another, and sums of that over many positions.
// Pure functions.
//
// Logits are f32, everything computed from them is double. Natural logarithms: KL is in nats.
#pragma once

#include <cstdint>
#include <span>

namespace twill::bench {

/// log(sum(exp(row))), without overflow.
double log_sum_exp(std::span<const float> row);

/// Index of the largest value; the first of equal ones.
std::int32_t argmax(std::span<const float> row);

/// KL(reference || other) of the two softmax distributions, in nats; never below 0. The rows have
/// the same length. An entry that only the reference gives any probability makes it infinite.
double kl_divergence(std::span<const float> reference, std::span<const float> other);

/// Sums over the positions of one model in one pair of types.
class tally {
public:
  /// A position whose true next token is `next`. `is_greedy`: the reference that made the sequence
  /// took it as the likeliest.
  void add(std::span<const float> reference, std::span<const float> row, std::int32_t next,
           bool is_greedy);

  std::int64_t positions() const { return positions_; }
  /// Shares from 0 to 1; without positions they are 1.
  double same_argmax() const;
  double greedy_found() const;
  std::int64_t greedy_tokens() const { return greedy_; }
  double mean_kl() const;
  double max_kl() const { return max_kl_; }
  /// exp of the mean of -log p(next).
  double perplexity() const;
  double reference_perplexity() const;

private:
  std::int64_t positions_ = 0;
  std::int64_t same_ = 0;
  std::int64_t greedy_ = 0;
  std::int64_t greedy_found_ = 0;
  double kl_sum_ = 0;
  double max_kl_ = 0;
  double nll_sum_ = 0;
  double reference_nll_sum_ = 0;
};

} // namespace twill::bench
