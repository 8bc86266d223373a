// check_weights: checks that a checkpoint has the tensors that its spec requires, with the right
// names, shapes and element types.
//
// The check reads no weights, so it is quick at any size. It does not find values that are not
// finite or quantised layouts that the kernels cannot use; decoder::load finds these when it packs
// the weights. The functions are pure; any thread may call them.
#pragma once

#include <vector>

#include "models/checkpoint/checkpoint.hpp"
#include "models/errc.hpp"
#include "models/spec.hpp"

namespace twill::models {

/// Returns one failure per wrong tensor, and an empty vector when the checkpoint fits the spec.
/// Tensors to which the spec gives no role come first, because a model with such a tensor computes
/// something else than the spec says. Missing tensors, wrong shapes and wrong element types follow
/// in the order of the layers.
std::vector<failure> check_weights(const model_spec& spec, const checkpoint& weights);

} // namespace twill::models
