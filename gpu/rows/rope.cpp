#include "gpu/rows/rope.hpp"

#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/rows_backend.hpp"
#include "gpu/detail/shapes.hpp"
#include "gpu/rows/detail/rope_kernels.hpp"

namespace twill::gpu {

void rope_angles(device& dev, const ragged_batch& batch, const float* inv_freq,
                 std::int32_t rotary_dim, tensor_ref cos, tensor_ref sin, float magnitude) {
  const long half = rotary_dim / 2;
  TWILL_ASSERT(rotary_dim > 0 && rotary_dim % 2 == 0, "rope_angles: rotary_dim must be even");
  detail::check_matrix(cos, batch.n_tokens, half,
                       "rope_angles: cos must be (n_tokens, rotary_dim / 2) f32");
  detail::check_matrix(sin, batch.n_tokens, half,
                       "rope_angles: sin must be (n_tokens, rotary_dim / 2) f32");
  const detail::angle_item item{batch.positions, inv_freq, magnitude,      cos.as<float>(),
                                sin.as<float>(), half,     cos.row_stride, sin.row_stride};
  detail::run_op<&detail::rows_backend::rope_angles>(dev, item, batch.n_tokens * half);
}

void rope_and_store(device& dev, const ragged_batch& batch, const rope_store_args& args) {
  const kv_layer kv = detail::checked_kv(args.kv);
  const std::int64_t kv_cols = std::int64_t{kv.n_kv_heads} * kv.head_dim;
  detail::check_matrix(args.q, batch.n_tokens, std::int64_t{args.n_heads} * kv.head_dim,
                       "rope_and_store: q must be (n_tokens, n_heads * head_dim) f32");
  detail::check_matrix(args.k, batch.n_tokens, kv_cols,
                       "rope_and_store: k must be (n_tokens, n_kv_heads * head_dim) f32");
  detail::check_matrix(args.v, batch.n_tokens, kv_cols,
                       "rope_and_store: v must be (n_tokens, n_kv_heads * head_dim) f32");
  TWILL_ASSERT(args.log_n_length == 0 || args.log_n_length > 1,
               "rope_and_store: log_n_length must be 0 or above 1");
  const bool rotates = args.rope != rope_kind::none;
  if (rotates) {
    TWILL_ASSERT(args.rotary_dim > 0 && args.rotary_dim % 2 == 0 && args.rotary_dim <= kv.head_dim,
                 "rope_and_store: rotary_dim must be even and at most head_dim");
    detail::check_matrix(args.cos, batch.n_tokens, args.rotary_dim / 2,
                         "rope_and_store: cos must be (n_tokens, rotary_dim / 2) f32");
    detail::check_matrix(args.sin, batch.n_tokens, args.rotary_dim / 2,
                         "rope_and_store: sin must be (n_tokens, rotary_dim / 2) f32");
  }
  const detail::rope_store all{args.q.as<float>(),
                               args.k.as<float>(),
                               args.v.as<float>(),
                               args.q.row_stride,
                               args.k.row_stride,
                               args.v.row_stride,
                               args.cos.as<const float>(),
                               args.sin.as<const float>(),
                               args.cos.row_stride,
                               args.sin.row_stride,
                               args.n_heads,
                               args.rotary_dim / 2,
                               args.rope,
                               args.log_n_length,
                               kv,
                               batch.positions,
                               batch.sequence_of,
                               batch.block_table,
                               batch.max_blocks};
  detail::run_op<&detail::rows_backend::rope_and_store>(dev, all, batch.n_tokens);
}

} // namespace twill::gpu
