#include "models/decoder/kv_arena.hpp"

#include <utility>

#include "models/decoder/gpu_error.hpp"
#include "models/kv_shape.hpp"
#include "models/offload/streams/kv_block_layout.hpp"

namespace twill::models {

namespace {

gpu::kv_layer layer_shape(const model_spec& spec, const decoder_options& options) {
  gpu::kv_layer layer = kv_shape(spec, options.kv_type, options.block_tokens);
  layer.n_blocks = options.n_blocks;
  return layer;
}

bool staged(const decoder_options& options, std::int32_t layer) {
  return !options.kv_staged.empty() && options.kv_staged[static_cast<std::size_t>(layer)];
}

} // namespace

std::int64_t kv_arena::block_bytes(const model_spec& spec, const decoder_options& options) {
  std::int64_t layers = 0;
  for (std::int32_t l = 0; l < spec.n_layers; ++l)
    layers += staged(options, l) ? 0 : 1;
  return layers * offload::kv_block_layout(layer_shape(spec, options)).bytes();
}

result<kv_arena> kv_arena::create(gpu::device& dev, const model_spec& spec,
                                  const decoder_options& options) {
  const gpu::kv_layer shape = layer_shape(spec, options);
  const offload::kv_block_layout record(shape);
  const std::int64_t stride = block_bytes(spec, options);
  auto memory = dev.allocate(static_cast<std::size_t>(options.n_blocks * stride), "KV blocks",
                             gpu::page_hint::filled_gradually);
  if (!memory.ok()) return from_gpu(memory.error());
  kv_arena arena;
  arena.memory = std::move(memory).value();
  if (options.touch_kv) dev.touch(arena.memory);
  auto* at = static_cast<unsigned char*>(arena.memory.data());
  for (std::int32_t l = 0; l < spec.n_layers; ++l) {
    if (staged(options, l)) {
      arena.layers.emplace_back(); // run() gets the KV of such a layer
      continue;
    }
    arena.layers.push_back(record.layer_at(shape, at, stride));
    at += record.bytes();
  }
  return arena;
}

} // namespace twill::models
