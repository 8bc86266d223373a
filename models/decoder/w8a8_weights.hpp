// w8a8_weights: a checkpoint whose matrices are rounded to 8 bits, symmetrically, with one scale
// per group of up to 256 columns. The rounding is lossy. Each value becomes the nearest multiple of
// 1/127 of the largest magnitude in its group. LLM.int8()'s vector-wise quantisation
// (arXiv:2208.07339, section 2) rounds weights so, but with one scale per row instead of one per
// group of a row.
//
// The group size divides the number of columns and is at most 256. On a host it is the largest such
// multiple of 32 or, if there is none, of 8. On a GPU it is the largest such multiple of 128, or
// else of 64, for which the GPU's kernels are faster, or else the size used on a host. On a host,
// 4-bit weights in groups of 32 or more columns keep their 4-bit codes: the kernel computes the
// rounded value from the code when it multiplies (grouped_u4_as_u8), to 1/32 of the rounding's
// unit. Matrices whose columns are not a multiple of 8, or that are named in `as_they_are`, are not
// rounded.
//
// Values are rounded while they are packed; no rounded copy of the checkpoint is stored. The result
// keeps `source` alive and has its thread safety.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "models/checkpoint/checkpoint.hpp"

namespace twill::models {

/// The device kind whose kernels will multiply the weights.
enum class w8a8_kernels : std::uint8_t { host, gpu };

std::shared_ptr<const checkpoint> rounded_to_8_bits(std::shared_ptr<const checkpoint> source,
                                                    const std::set<std::string>& as_they_are,
                                                    w8a8_kernels kernels);

} // namespace twill::models
