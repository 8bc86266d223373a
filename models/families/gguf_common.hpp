// gguf_common: readers of what the architectures of GGUF files have in common.
//
// Pure functions of the file; failures go to the gguf_reader.
#pragma once

#include "models/checkpoint/checkpoint.hpp"
#include "models/families/gguf_reader.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

/// The tensor names that every architecture uses. Q, K and V are one matrix or three, as they are
/// in the first layer.
tensor_names gguf_names(const checkpoint& weights);

/// Reads layers, widths, heads, context length, epsilon and attention scale; refuses experts.
void read_gguf_sizes(gguf_reader& file, model_spec& spec);

/// Sets vocab_size from the rows of the embedding. A head that is absent is tied if `may_be_tied`.
void read_gguf_vocabulary(gguf_reader& file, const checkpoint& weights, bool may_be_tied,
                          model_spec& spec);

/// Sets the frequencies: base^(-2i / rotary_dim), divided by the linear factor and by the factors
/// of the tensor names.rope_factors. The sizes must have been read.
void read_gguf_rotary(gguf_reader& file, const checkpoint& weights, gpu::rope_kind kind,
                      model_spec& spec);

/// The spec, checked, or the first failure of the file.
result<model_spec> finished(const gguf_reader& file, model_spec spec);

} // namespace twill::models::families
