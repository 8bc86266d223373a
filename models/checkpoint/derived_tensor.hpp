// derived_tensor: recognises tensors of a checkpoint that are not weights, but values that the
// training code computed from the configuration.
//
// PyTorch stores the buffers of modules in checkpoints beside the weights: tables of rotary
// frequencies, cosines and sines, causal masks, position numbers. twill computes such values from
// the configuration, as transformers does, so readers omit these tensors. The functions are pure.
#pragma once

#include "models/checkpoint/checkpoint.hpp"

namespace twill::models {

/// Whether training code computed the tensor from the configuration. The tensor's name decides, and
/// its shape too where a weight could have that name.
bool is_derived(const tensor_info& tensor);

} // namespace twill::models
