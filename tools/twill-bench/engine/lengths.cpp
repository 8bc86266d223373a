#include "tools/twill-bench/engine/lengths.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace twill::bench {

std::int32_t draw_length(random_source& random, std::int32_t mean_tokens, const length_kind& kind) {
  if (kind.cv > 0) {
    // A lognormal distribution has mean exp(mu + sigma^2 / 2) and squared coefficient of variation
    // exp(sigma^2) - 1.
    const double variance = std::log1p(kind.cv * kind.cv);
    const double mu = std::log(double(mean_tokens)) - variance / 2;
    const double drawn = std::round(std::exp(mu + std::sqrt(variance) * random.normal()));
    constexpr double most = std::numeric_limits<std::int32_t>::max() / 4;
    return static_cast<std::int32_t>(std::clamp(drawn, 1.0, most));
  }
  const auto low = static_cast<std::int32_t>(std::floor(mean_tokens * (1.0 - kind.range_ratio)));
  const auto high = static_cast<std::int32_t>(std::ceil(mean_tokens * (1.0 + kind.range_ratio)));
  return static_cast<std::int32_t>(random.between(std::max(1, low), std::max(1, high)));
}

} // namespace twill::bench
