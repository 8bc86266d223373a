// alibi: slopes of attention with linear biases (ALiBi, arXiv:2108.12409). Pure function.
#pragma once

#include <cstdint>
#include <vector>

namespace twill::models::families {

/// Returns one slope per head: powers of 2^(-8 / n) for n heads. If n is not a power of two, the
/// slopes for the next smaller power of two come first, followed by every other slope of those for
/// the next larger power of two. // (n_heads)
std::vector<float> alibi_slopes(std::int32_t n_heads);

} // namespace twill::models::families
