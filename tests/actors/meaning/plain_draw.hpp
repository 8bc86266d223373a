// How one token of one request is drawn by the definition of config/sampling_params: which tokens
// are possible, and which token the device's sampler draws if it gets this request's row alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "config/sampling.hpp"
#include "gpu/device.hpp"
#include "gpu/sampling/sample.hpp"

namespace twill::test {

/// Natural logarithms of probabilities, in double.
std::vector<double> log_probabilities(const std::vector<float>& logits);

/// The `n` likeliest ids, the lower one first where two are equal.
std::vector<std::int32_t> likeliest(const std::vector<float>& logits, std::size_t n);

struct plain_draw {
  const config::sampling_params* params = nullptr;
  std::vector<gpu::token_count> counts; ///< where a penalty is on
  std::vector<gpu::token_bias> biases;  ///< bans are biases of -infinity
  std::vector<std::uint32_t> mask;      ///< empty: every token is allowed
  std::uint64_t seed = 0, position = 0;

  /// Returns the reason why `token` cannot have been drawn from these logits, or an empty text if
  /// it can have been. Tokens at the edge of top_p or min_p are accepted either way.
  std::string refuses(const std::vector<float>& logits, std::int32_t token) const;
  /// What the device's sampler draws from this row alone.
  std::int32_t token_of(gpu::device& dev, const std::vector<float>& logits) const;

private:
  bool masked(std::size_t id) const;
  std::vector<double> edited(const std::vector<float>& logits) const;
};

} // namespace twill::test
