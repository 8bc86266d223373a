// w8a8_weights: a checkpoint's matrices in 8 bits, symmetric, with one scale for up to 256 columns.
// Lossy: to nearest in steps of a group's largest magnitude / 127, as LLM.int8()'s vector-wise
// quantisation rounds weights (arXiv:2208.07339, section 2), by groups of a row instead of rows.
// Weights of 4 bits in groups of 32 columns and more keep their codes: what a code is rounded to is
// computed from it where it is multiplied (grouped_u4_as_u8), to 1/32 of a step of the rounding.
//
// Thread safety and lifetime: as the checkpoint's, which it keeps. Values are rounded while they
// are packed; nothing is stored. A group is the largest multiple of 32, else of 8, that divides the
// columns and is at most 256; matrices whose columns are no multiple of 8, or that are named in
// `as_they_are`, stay as they are.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "models/checkpoint/checkpoint.hpp"

namespace twill::models {

std::shared_ptr<const checkpoint> rounded_to_8_bits(std::shared_ptr<const checkpoint> source,
                                                    const std::set<std::string>& as_they_are);

} // namespace twill::models
