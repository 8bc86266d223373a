// lengths: draws the lengths of prompts and outputs. The functions are pure except for the random
// source.
#pragma once

#include <cstdint>

#include "tools/twill-bench/engine/random.hpp"

namespace twill::bench {

struct length_kind {
  double range_ratio = 0; ///< uniform in [mean * (1 - r), mean * (1 + r)]
  double cv = 0;          ///< above 0: lognormal, standard deviation over mean
};

/// Draws a length of at least 1 token.
std::int32_t draw_length(random_source& random, std::int32_t mean_tokens, const length_kind& kind);

} // namespace twill::bench
