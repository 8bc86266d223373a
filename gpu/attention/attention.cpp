#include "gpu/attention/attention.hpp"

#include <algorithm>

#include "gpu/detail/attention_backend.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/shapes.hpp"

namespace twill::gpu {

std::int64_t attention_scratch_bytes(const device& dev, std::int32_t n_heads,
                                     std::int32_t n_kv_heads, std::int32_t head_dim,
                                     std::int64_t n_tokens, std::int64_t reach) {
  const auto bytes_of = [&](const detail::op_backends& ops) {
    return ops.get<detail::attention_backend>().scratch_bytes(dev, n_heads, n_kv_heads, head_dim,
                                                              n_tokens, reach);
  };
  return std::max(bytes_of(dev.ops()), bytes_of(*dev.ops().portable)); // either may run
}

void attention(device& dev, const ragged_batch& batch, const attention_args& given) {
  attention_args args = given;
  args.kv = detail::checked_kv(given.kv);
  const kv_layer& kv = args.kv;
  TWILL_ASSERT(kv.n_kv_heads > 0 && args.n_heads > 0 && args.n_heads % kv.n_kv_heads == 0,
               "attention: n_heads must be a multiple of n_kv_heads");
  for (const tensor_ref* t : {&args.q, &args.out})
    TWILL_ASSERT(t->rank == 2 && t->shape[0] == batch.n_tokens &&
                     t->shape[1] == std::int64_t{args.n_heads} * kv.head_dim,
                 "attention: q and out must be (n_tokens, n_heads * head_dim)");
  TWILL_ASSERT(args.q.type == dtype::f32 && detail::is_activation_type(args.out.type),
               "attention: q must be f32, and out f32, f16 or bf16");
  if (batch.n_tokens == 0) return;
  detail::run_op<&detail::attention_backend::attend>(dev, batch, args);
}

} // namespace twill::gpu
