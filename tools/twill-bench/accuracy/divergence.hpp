// divergence: measures how far one row of logits is from another, and sums this over many
// positions. The functions are pure.
//
// Logits are f32; everything computed from them is double. Logarithms are natural, so KL divergence
// is in nats.
#pragma once

#include <cstdint>
#include <span>

namespace twill::bench {

/// log(sum(exp(row))), without overflow.
double log_sum_exp(std::span<const float> row);

/// Index of the largest value; the first one when several are equal.
std::int32_t argmax(std::span<const float> row);

/// KL(reference || other) of the softmax distributions of the two rows, in nats; never below 0.
/// Both rows have the same length. The result is infinite when `other` gives probability 0 to an
/// entry to which `reference` does not.
double kl_divergence(std::span<const float> reference, std::span<const float> other);

/// Sums over all positions of one model in one pair of types.
class tally {
public:
  /// Adds a position whose true next token is `next`. `is_greedy` says that the reference
  /// implementation that made the sequence chose `next` as the most likely token.
  void add(std::span<const float> reference, std::span<const float> row, std::int32_t next,
           bool is_greedy);

  std::int64_t positions() const { return positions_; }
  /// Shares from 0 to 1; both are 1 when there are no positions.
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
