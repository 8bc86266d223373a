// w8a8_weights: a checkpoint's matrices in 8 bits, symmetric, with one scale for up to 256 columns.
// The rounding is lossy: values go to the nearest multiple of their group's largest magnitude /
// 127, as LLM.int8()'s vector-wise quantisation rounds weights (arXiv:2208.07339, section 2), but
// by groups of a row instead of rows. A group is the largest multiple of 32, else of 8, that
// divides the columns and is at most 256; on a GPU, whose kernels are faster for them, the largest
// multiple of 128, else of 64, else that. On the host weights of 4 bits in groups of 32 columns and
// more keep their codes: the rounded value is computed from the code where it is multiplied
// (grouped_u4_as_u8), to 1/32 of the rounding's unit. Matrices whose columns are not a multiple of
// 8, or that are named in `as_they_are`, are not rounded.
//
// Values are rounded while they are packed, and nothing is stored. The result keeps the checkpoint
// alive and may be read by the same threads.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "models/checkpoint/checkpoint.hpp"

namespace twill::models {

/// Whose kernels multiply the weights.
enum class w8a8_kernels : std::uint8_t { host, gpu };

std::shared_ptr<const checkpoint> rounded_to_8_bits(std::shared_ptr<const checkpoint> source,
                                                    const std::set<std::string>& as_they_are,
                                                    w8a8_kernels kernels);

} // namespace twill::models
