#include "models/offload/streams/kv_block_layout.hpp"

#include "gpu/attention/kv_element.hpp"

namespace twill::models::offload {
namespace {

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

} // namespace

kv_block_layout::kv_block_layout(const gpu::kv_layer& shape) {
  const std::int64_t tokens = std::int64_t{shape.n_kv_heads} * shape.block_tokens;
  elements = aligned(tokens * shape.head_dim * static_cast<std::int64_t>(gpu::size_of(shape.type)));
  if (gpu::has_kv_scales(shape.type))
    scales = aligned(tokens * static_cast<std::int64_t>(sizeof(float)));
}

gpu::kv_layer kv_block_layout::layer_at(gpu::kv_layer shape, unsigned char* first,
                                        std::int64_t stride) const {
  shape.keys = first;
  shape.values = first + elements;
  shape.block_stride = stride / static_cast<std::int64_t>(gpu::size_of(shape.type));
  if (scales == 0) return shape;
  shape.key_scales = reinterpret_cast<float*>(first + 2 * elements);
  shape.value_scales = reinterpret_cast<float*>(first + 2 * elements + scales);
  shape.scale_stride = stride / static_cast<std::int64_t>(sizeof(float));
  return shape;
}

} // namespace twill::models::offload
