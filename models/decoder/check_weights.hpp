// check_weights: whether a checkpoint has the tensors that its spec wants, by names, shapes and
// types.
//
// No weights are read, so that the check is quick at any size. Values that are not finite, and
// packings that the kernels do not take, show when decoder::load packs them. Pure; any thread.
#pragma once

#include <vector>

#include "models/checkpoint/checkpoint.hpp"
#include "models/errc.hpp"
#include "models/spec.hpp"

namespace twill::models {

/// One failure per tensor that is wrong; none when the checkpoint fits. Tensors without a role come
/// first (such a model computes something else), then missing ones, wrong shapes and wrong element
/// types in the order of the layers.
std::vector<failure> check_weights(const model_spec& spec, const checkpoint& weights);

} // namespace twill::models
