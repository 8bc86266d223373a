// int4_weights: a checkpoint whose dense matrices are rounded to 4 bits in groups of 64 columns,
// with a scale and an offset each, as FlexGen compresses weights (arXiv:2303.06865, section 5).
// Lossy.
//
// Thread safety and lifetime are those of the checkpoint, which it keeps alive. Values are rounded
// to nearest while they are packed; nothing is stored. Matrices that are quantised already, whose
// columns are no multiple of 64, or that `as_they_are` names stay unchanged.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "models/checkpoint/checkpoint.hpp"

namespace twill::models::offload {

std::shared_ptr<const checkpoint> int4_weights(std::shared_ptr<const checkpoint> source,
                                               std::set<std::string> as_they_are);

} // namespace twill::models::offload
