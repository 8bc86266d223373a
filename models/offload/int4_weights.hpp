// int4_weights: a checkpoint's dense matrices in 4 bits, groups of 64 columns, asymmetric, as
// FlexGen compresses weights (arXiv:2303.06865, section 5). Lossy.
//
// Thread safety and lifetime: as the checkpoint's, which it keeps. Values are rounded to nearest
// while they are packed; nothing is stored. Matrices that are quantised already, whose columns are
// no multiple of 64, or that are named in `as_they_are`, stay as they are.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "models/checkpoint/checkpoint.hpp"

namespace twill::models::offload {

std::shared_ptr<const checkpoint> int4_weights(std::shared_ptr<const checkpoint> source,
                                               std::set<std::string> as_they_are);

} // namespace twill::models::offload
