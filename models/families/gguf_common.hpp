// gguf_common: functions that read what all architectures of GGUF files have in common.
//
// The functions are pure: they depend on the file alone, and report failures to the gguf_reader.
#pragma once

#include "models/checkpoint/checkpoint.hpp"
#include "models/families/gguf_reader.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

/// Returns the tensor names that every architecture uses. The tensors of the first layer decide
/// whether Q, K and V are one matrix or three.
tensor_names gguf_names(const checkpoint& weights);

/// Reads the numbers of layers and heads, the widths, the context length, the epsilon of norms and
/// the attention scale. Fails for mixtures of experts.
void read_gguf_sizes(gguf_reader& file, model_spec& spec);

/// Sets vocab_size to the number of rows of the embedding. An absent head is tied if `may_be_tied`.
void read_gguf_vocabulary(gguf_reader& file, const checkpoint& weights, bool may_be_tied,
                          model_spec& spec);

/// Sets the rotary kind and frequencies: base^(-2i / rotary_dim), divided by the factors in the
/// tensor that spec.names.rope_factors names, and then scaled by read_gguf_scaling(). Call
/// read_gguf_sizes() first.
void read_gguf_rotary(gguf_reader& file, const checkpoint& weights, gpu::rope_kind kind,
                      model_spec& spec);

/// Returns the validated spec, or the first failure of the file.
result<model_spec> finished(const gguf_reader& file, model_spec spec);

} // namespace twill::models::families
