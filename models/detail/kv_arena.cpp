#include "models/detail/kv_arena.hpp"

#include <utility>

#include "models/detail/gpu_error.hpp"

namespace twill::models {

namespace {

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

/// Bytes of one layer's keys in one block, and of their scales.
struct part_bytes {
  std::int64_t elements = 0;
  std::int64_t scales = 0; ///< eight-bit KV alone has one scale per head and token

  part_bytes(const model_spec& spec, const decoder_options& options)
      : elements(aligned(std::int64_t{spec.kv_size()} * options.block_tokens *
                         static_cast<std::int64_t>(gpu::size_of(options.kv_type)))) {
    if (options.kv_type == gpu::dtype::i8)
      scales = aligned(std::int64_t{spec.n_kv_heads} * options.block_tokens *
                       static_cast<std::int64_t>(sizeof(float)));
  }
  std::int64_t layer() const { return 2 * (elements + scales); }
};

bool staged(const decoder_options& options, std::int32_t layer) {
  return !options.kv_staged.empty() && options.kv_staged[static_cast<std::size_t>(layer)];
}

} // namespace

std::int64_t kv_arena::block_bytes(const model_spec& spec, const decoder_options& options) {
  std::int64_t layers = 0;
  for (std::int32_t l = 0; l < spec.n_layers; ++l)
    layers += staged(options, l) ? 0 : 1;
  return layers * part_bytes(spec, options).layer();
}

result<kv_arena> kv_arena::create(gpu::device& dev, const model_spec& spec,
                                  const decoder_options& options) {
  const part_bytes part(spec, options);
  const std::int64_t record = block_bytes(spec, options);
  auto memory = dev.allocate(static_cast<std::size_t>(options.n_blocks * record), "KV blocks",
                             gpu::filling::bit_by_bit);
  if (!memory.ok()) return from_gpu(memory.error());
  kv_arena arena;
  arena.memory = std::move(memory).value();
  if (options.touch_kv) dev.touch(arena.memory);
  auto* at = static_cast<unsigned char*>(arena.memory.data());
  for (std::int32_t l = 0; l < spec.n_layers; ++l) {
    if (staged(options, l)) {
      arena.layers.emplace_back(); // its KV comes and goes
      continue;
    }
    gpu::kv_layer layer;
    layer.type = options.kv_type;
    layer.n_blocks = options.n_blocks;
    layer.n_kv_heads = spec.n_kv_heads;
    layer.block_tokens = options.block_tokens;
    layer.head_dim = spec.head_dim;
    layer.keys = at;
    layer.values = at + part.elements;
    layer.block_stride = record / static_cast<std::int64_t>(gpu::size_of(options.kv_type));
    if (part.scales > 0) {
      layer.key_scales = reinterpret_cast<float*>(at + 2 * part.elements);
      layer.value_scales = reinterpret_cast<float*>(at + 2 * part.elements + part.scales);
      layer.scale_stride = record / static_cast<std::int64_t>(sizeof(float));
    }
    arena.layers.push_back(layer);
    at += part.layer();
  }
  return arena;
}

} // namespace twill::models
