#include "models/detail/kv_arena.hpp"

#include <utility>

#include "models/detail/gpu_error.hpp"

namespace twill::models {

result<kv_arena> kv_arena::create(gpu::device& dev, const model_spec& spec,
                                  const decoder_options& options) {
  const std::int64_t block_elements = spec.kv_size() * options.block_tokens;
  const auto bytes =
      static_cast<std::size_t>(options.n_blocks * block_elements) * gpu::size_of(options.kv_type);
  const auto n_scales = static_cast<std::size_t>(std::int64_t{options.n_blocks} * spec.n_kv_heads *
                                                 options.block_tokens);
  kv_arena arena;
  for (std::int32_t l = 0; l < spec.n_layers; ++l) {
    if (!options.kv_staged.empty() && options.kv_staged[static_cast<std::size_t>(l)]) {
      arena.layers.emplace_back(); // its KV comes and goes
      continue;
    }
    auto keys = dev.allocate(bytes, "KV blocks: keys");
    if (!keys.ok()) return from_gpu(keys.error());
    auto values = dev.allocate(bytes, "KV blocks: values");
    if (!values.ok()) return from_gpu(values.error());
    gpu::kv_layer layer;
    layer.keys = keys.value().data();
    layer.values = values.value().data();
    layer.type = options.kv_type;
    layer.n_blocks = options.n_blocks;
    layer.n_kv_heads = spec.n_kv_heads;
    layer.block_tokens = options.block_tokens;
    layer.head_dim = spec.head_dim;
    if (options.kv_type == gpu::dtype::i8) {
      for (float** scales : {&layer.key_scales, &layer.value_scales}) {
        auto made = dev.allocate(n_scales * sizeof(float), "KV blocks: scales");
        if (!made.ok()) return from_gpu(made.error());
        *scales = static_cast<float*>(made.value().data());
        arena.memory.push_back(std::move(made).value());
      }
    }
    arena.layers.push_back(layer);
    arena.memory.push_back(std::move(keys).value());
    arena.memory.push_back(std::move(values).value());
  }
  return arena;
}

} // namespace twill::models
