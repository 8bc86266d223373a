#include "gpu/attention/kv4.hpp"

#include "gpu/attention/detail/kv4_kernels.hpp"
#include "gpu/detail/attention_backend.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/shapes.hpp"

namespace twill::gpu {
namespace {

/// Checks the shapes and returns the number of work items.
long items_of(const detail::kv4_geometry& at, std::int32_t count) {
  TWILL_ASSERT(has_kv4(at.kv), "kv4: KV must be f32, f16 or bf16 with even head_dim");
  TWILL_ASSERT(at.kv.block_tokens % 8 == 0, "kv4: block_tokens must be a multiple of 8");
  TWILL_ASSERT(at.stride >= kv4_block_bytes(at.kv) && at.stride % 4 == 0,
               "kv4: stride must hold a block, in multiples of 4");
  return long{count} * 2 * at.kv.n_kv_heads * at.groups();
}

} // namespace

bool has_kv4(const kv_layer& kv) {
  return !has_kv_scales(kv.type) && kv.head_dim % 2 == 0;
}

std::int64_t kv4_block_bytes(const kv_layer& kv) {
  return 2 * kv.n_kv_heads * detail::kv4_geometry{kv, nullptr, 0, 0}.head_bytes();
}

void kv4_pack(device& dev, const kv_layer& kv, std::int32_t first, std::int32_t count, void* packed,
              std::int64_t stride) {
  const detail::kv4_geometry at{detail::checked_kv(kv), static_cast<unsigned char*>(packed), stride,
                                first};
  detail::run_op<&detail::attention_backend::kv4_pack>(dev, at, items_of(at, count));
}

void kv4_unpack(device& dev, const kv_layer& kv, std::int32_t first, std::int32_t count,
                const void* packed, std::int64_t stride) {
  // kv4_geometry serves both directions; unpacking writes nothing to `packed`.
  auto* from = static_cast<unsigned char*>(const_cast<void*>(packed));
  const detail::kv4_geometry at{detail::checked_kv(kv), from, stride, first};
  detail::run_op<&detail::attention_backend::kv4_unpack>(dev, at, items_of(at, count));
}

} // namespace twill::gpu
