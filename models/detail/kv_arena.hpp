// kv_arena: the KV memory of all layers, block ids shared by every layer.
//
// Owned by the decoder's thread. Which block belongs to whom is decided elsewhere.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/device.hpp"
#include "gpu/ops/attention.hpp"
#include "models/decoder.hpp"

namespace twill::models {

struct kv_arena {
  std::vector<gpu::kv_layer> layers; // (n_layers)
  std::vector<gpu::buffer> memory;

  static result<kv_arena> create(gpu::device& dev, const model_spec& spec,
                                 const decoder_options& options);
};

} // namespace twill::models
