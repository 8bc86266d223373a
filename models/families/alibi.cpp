#include "models/families/alibi.hpp"

#include <bit>
#include <cmath>

namespace twill::models::families {

std::vector<float> alibi_slopes(std::int32_t n_heads) {
  const auto power = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(n_heads)));
  std::vector<float> slopes;
  for (std::int32_t i = 0; i < power; ++i)
    slopes.push_back(static_cast<float>(std::exp2(-8.0 * (i + 1) / power)));
  for (std::int32_t i = 0; power + i < n_heads; ++i)
    slopes.push_back(static_cast<float>(std::exp2(-4.0 * (2 * i + 1) / power)));
  return slopes;
}

} // namespace twill::models::families
