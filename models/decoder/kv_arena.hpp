// kv_arena: the KV memory of all layers, block ids shared by every layer.
//
// A block is one record: keys and values of each layer in turn, 64-byte aligned, so that a sequence
// touches as few pages as its length needs. Owned by the decoder's thread. Which block belongs to
// whom is decided elsewhere.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/attention/kv_layer.hpp"
#include "gpu/device.hpp"
#include "models/decoder/decoder.hpp"

namespace twill::models {

struct kv_arena {
  std::vector<gpu::kv_layer> layers; // (n_layers)
  gpu::buffer memory;

  /// Bytes of one block's record.
  static std::int64_t block_bytes(const model_spec& spec, const decoder_options& options);
  static result<kv_arena> create(gpu::device& dev, const model_spec& spec,
                                 const decoder_options& options);
};

} // namespace twill::models
