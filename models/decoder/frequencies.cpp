#include "models/decoder/frequencies.hpp"

#include <algorithm>
#include <cmath>

namespace twill::models {
namespace {

/// The factor on the base, before it is raised to d / (d - 2).
double growth_of(const rope_rule& rope, std::int32_t prompt_length, std::int32_t position) {
  const double trained = rope.trained_length;
  if (rope.growth == rope_growth::prompt_ntk)
    return std::max(std::exp2(std::ceil(std::log2(prompt_length / trained) + 1)) - 1, 1.0);
  const double length = std::max({prompt_length, position + 1, rope.trained_length});
  return rope.factor * length / trained - (rope.factor - 1);
}

} // namespace

std::vector<double> plain_frequencies(double base, std::int32_t rotary_dim) {
  std::vector<double> freq;
  for (std::int32_t i = 0; i < rotary_dim / 2; ++i)
    freq.push_back(std::pow(base, -2.0 * i / rotary_dim));
  return freq;
}

bool grows(const rope_rule& rope, std::int32_t prompt_length, std::int32_t position) {
  switch (rope.growth) {
  case rope_growth::none:
    break;
  case rope_growth::prompt_ntk:
    return prompt_length > rope.trained_length;
  case rope_growth::length_ntk:
    return std::max(prompt_length, position + 1) > rope.trained_length;
  }
  return false;
}

std::vector<double> grown_frequencies(const rope_rule& rope, std::int32_t prompt_length,
                                      std::int32_t position) {
  const double dim = rope.rotary_dim;
  const double growth = growth_of(rope, prompt_length, position);
  return plain_frequencies(rope.base * std::pow(growth, dim / (dim - 2)), rope.rotary_dim);
}

} // namespace twill::models
