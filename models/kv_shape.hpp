// kv_shape: the shape of one KV block of a layer, from the model's spec. The functions are pure.
#pragma once

#include <cstdint>

#include "gpu/attention/kv_layer.hpp"
#include "models/spec.hpp"

namespace twill::models {

/// Returns a kv_layer that describes the shape and type of KV blocks but has no blocks and no
/// memory. The caller that allocates the KV sets the addresses and the number of blocks.
inline gpu::kv_layer kv_shape(const model_spec& spec, gpu::dtype type, std::int32_t block_tokens) {
  gpu::kv_layer shape;
  shape.type = type;
  shape.n_kv_heads = spec.n_kv_heads;
  shape.block_tokens = block_tokens;
  shape.head_dim = spec.head_dim;
  return shape;
}

} // namespace twill::models
