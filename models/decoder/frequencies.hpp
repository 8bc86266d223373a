// frequencies: rotary frequencies, both fixed ones and those that grow with the sequence. Pure.
//
// Computed in double. Rotary positions: RoFormer (arXiv:2104.09864); see rope_growth for the kinds
// of growth.
#pragma once

#include <cstdint>
#include <vector>

#include "models/spec.hpp"

namespace twill::models {

/// base^(-2i / rotary_dim). // (rotary_dim / 2)
std::vector<double> plain_frequencies(double base, std::int32_t rotary_dim);

/// True when the row at `position` of a sequence with this prompt has frequencies of its own.
bool grows(const rope_rule& rope, std::int32_t prompt_length, std::int32_t position);

/// The frequencies of a row for which grows() is true. // (rotary_dim / 2)
std::vector<double> grown_frequencies(const rope_rule& rope, std::int32_t prompt_length,
                                      std::int32_t position);

} // namespace twill::models
