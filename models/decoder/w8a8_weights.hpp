// w8a8_weights: a checkpoint whose matrices are rounded to 8 bits, symmetrically, with one scale
// per group of up to 256 columns. The rounding is lossy. Each value becomes the nearest multiple of
// about 1/127 of the largest magnitude in its group. LLM.int8()'s vector-wise quantisation
// (arXiv:2208.07339, section 2) rounds weights so, but with one scale per row instead of one per
// group of a row.
//
// The group size divides the number of columns and is at most 256. On a host it is the largest such
// multiple of 32 or, if there is none, of 8. The GPU's kernels are faster with multiples of 64 than
// with other sizes, so on a GPU it is the largest such multiple of 128 or, if there is none, of 64;
// if that does not exist either, it is the size used on a host. Matrices whose columns are not a
// multiple of 8, or that are named in `as_they_are`, are not rounded.
//
// On a host, 4-bit weights whose source has groups of 32 columns, or of a multiple of 32, keep
// their 4-bit codes. The new group is then the largest suitable multiple of the source's group, at
// least 64 columns; without such a multiple, the weights are rounded like others. The kernel
// computes the 8-bit code from the 4-bit code when it multiplies
// (gpu::weight_kind::grouped_u4_as_u8). It computes with multiples of 1/256, so the value that it
// rounds to an integer code is wrong by at most 1/32; the code can therefore differ by 1 from the
// nearest one if the exact value lies that close to the middle between two codes.
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
