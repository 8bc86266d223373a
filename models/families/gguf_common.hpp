// gguf_common: what the architectures of GGUF files share: names, sizes, vocabulary, rotation.
//
// Pure functions of the file; failures go to the gguf_reader.
#pragma once

#include "models/checkpoint/checkpoint.hpp"
#include "models/families/gguf_reader.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

/// The names that every architecture uses; Q, K and V are one matrix or three, as in the first
/// layer.
tensor_names gguf_names(const checkpoint& weights);

/// Layers, widths, heads, context length, epsilon and attention scale; refuses experts.
void read_gguf_sizes(gguf_reader& file, model_spec& spec);

/// vocab_size from the embedding's rows; a head that is absent is tied where `may_be_tied`.
void read_gguf_vocabulary(gguf_reader& file, const checkpoint& weights, bool may_be_tied,
                          model_spec& spec);

/// Frequencies: base^(-2i / rotary_dim), divided by the linear factor and by the per-frequency
/// factors under names.rope_factors. After the sizes.
void read_gguf_rotary(gguf_reader& file, const checkpoint& weights, gpu::rope_kind kind,
                      model_spec& spec);

/// The spec, or what was wrong with the file.
result<model_spec> finished(const gguf_reader& file, model_spec spec);

} // namespace twill::models::families
