// alibi: attention with linear biases (arXiv:2108.12409). Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace twill::models::families {

/// One slope per head: powers of 2^(-8 / n) for n heads. Where n is no power of two, the slopes of
/// the next smaller power come first, then every other slope of the next larger one. // (n_heads)
std::vector<float> alibi_slopes(std::int32_t n_heads);

} // namespace twill::models::families
