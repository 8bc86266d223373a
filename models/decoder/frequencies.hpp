// frequencies: rotary frequencies, both fixed ones and those that change with the length of the
// sequence. The functions are pure.
//
// All values are computed in double precision. Rotary positions come from RoFormer
// (arXiv:2104.09864). rope_growth in models/spec.hpp lists the rules by which frequencies change.
#pragma once

#include <cstdint>
#include <vector>

#include "models/spec.hpp"

namespace twill::models {

/// base^(-2i / rotary_dim). // (rotary_dim / 2)
std::vector<double> plain_frequencies(double base, std::int32_t rotary_dim);

/// True when the row at `position`, in a sequence whose prompt has `prompt_length` tokens, does not
/// use the fixed frequencies of rope_rule::inv_freq.
bool grows(const rope_rule& rope, std::int32_t prompt_length, std::int32_t position);

/// The frequencies of a row for which grows() is true. // (rotary_dim / 2)
std::vector<double> grown_frequencies(const rope_rule& rope, std::int32_t prompt_length,
                                      std::int32_t position);

} // namespace twill::models
