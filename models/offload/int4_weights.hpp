// int4_weights: a checkpoint whose dense matrices are rounded to 4 bits in groups of 64 columns,
// with a scale and an offset each, as FlexGen compresses weights (arXiv:2303.06865, section 5). The
// rounding is lossy.
//
// The result keeps `source` alive and has its thread safety. Values are rounded to nearest while
// they are packed; no rounded copy is stored. Three kinds of matrices stay unchanged: those that
// are quantised already, those whose number of columns is not a multiple of 64, and those named in
// `as_they_are`.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "models/checkpoint/checkpoint.hpp"

namespace twill::models::offload {

std::shared_ptr<const checkpoint> int4_weights(std::shared_ptr<const checkpoint> source,
                                               std::set<std::string> as_they_are);

} // namespace twill::models::offload
