// derived_tensor: tensors of a checkpoint that hold no weights, only values that the code which
// wrote it had computed from the configuration.
//
// Buffers of PyTorch modules land in checkpoints beside the weights: tables of rotary frequencies,
// cosines and sines, causal masks, position numbers. twill computes what it needs of them from the
// configuration, as transformers does, so readers leave them out. Pure.
#pragma once

#include "models/checkpoint/checkpoint.hpp"

namespace twill::models {

/// Whether the tensor is such a buffer, by its name and, where a weight could have that name, by
/// its shape.
bool is_derived(const tensor_info& tensor);

} // namespace twill::models
