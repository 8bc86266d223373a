// kv_arena: the KV memory of all layers. A block id names a block of every layer.
//
// One block's keys and values of all layers lie together in one record, aligned to 64 bytes. A
// sequence therefore touches only as many memory pages as its length needs. Owned by the decoder's
// thread. The caller decides which block belongs to which sequence.
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

  /// Bytes of the record of one block.
  static std::int64_t block_bytes(const model_spec& spec, const decoder_options& options);
  static result<kv_arena> create(gpu::device& dev, const model_spec& spec,
                                 const decoder_options& options);
};

} // namespace twill::models
