// The drivers behind gpu/linear/linear.hpp.
#pragma once

#include <cstdint>

#include "gpu/detail/packed_matrix_impl.hpp"
#include "gpu/detail/packed_view.hpp"
#include "gpu/linear/linear.hpp"

namespace twill::gpu::detail {

/// The type that products are really computed in: dense weights have no int8 form.
inline compute_type effective_compute(const packed_view& w, compute_type asked) {
  if (asked == compute_type::w8a8) asked = compute_type::int8;
  if (w.grouped()) return asked;
  if (asked == compute_type::int8) return compute_type::bf16;
  return asked == compute_type::int8x2 ? compute_type::f32 : asked;
}

/// Codes that are widened and integer terms have micro-kernels for what they are made for.
inline bool has_host_kernel(const packed_view& w, compute_type asked) {
  const bool for_int8 = w.kind == weight_kind::grouped_u4_as_u8 || w.integer_terms;
  return !for_int8 || effective_compute(w, asked) == compute_type::int8;
}

/// Scratch of the drivers below for any number of rows up to `m`; `ordered`: with a column order.
std::int64_t linear_host_scratch(const packed_view& w, bool ordered, compute_type asked,
                                 std::int64_t m, std::int64_t threads);
std::int64_t linear_generic_scratch(const packed_view& w, bool ordered, compute_type asked,
                                    std::int64_t m);

/// Micro-kernels of gpu/host/, tiles shared out among the device's threads.
void linear_host(device& dev, const linear_args& args);

/// The same with silu_mul() in the tiles' write-out; false, and nothing done, where the tiles of
/// this many rows cannot, or would not gain.
bool linear_silu_mul_host(device& dev, const linear_args& args, tensor_ref out);

/// One kernel for any execution space, one output element per work item. Bits differ from
/// linear_host's (other instructions), but are as independent of batch and threads.
void linear_generic(device& dev, const linear_args& args);

} // namespace twill::gpu::detail
