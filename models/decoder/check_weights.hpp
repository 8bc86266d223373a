// check_weights: what keeps a checkpoint from running as its spec says, from names, shapes and
// types.
//
// Reads no weights, so it is quick at any size; values that are not finite, and packings that the
// kernels do not take, show when decoder::load packs them. Pure; any thread.
#pragma once

#include <vector>

#include "models/checkpoint/checkpoint.hpp"
#include "models/errc.hpp"
#include "models/spec.hpp"

namespace twill::models {

/// Tensors without a role first (such a model computes something else), then missing ones, wrong
/// shapes and element types in the order of the layers. Empty: nothing found.
std::vector<failure> check_weights(const model_spec& spec, const checkpoint& weights);

} // namespace twill::models
