// linear_backend: the functions behind gpu/linear/linear.hpp, one table per backend.
//
// The device chooses its table once (gpu/detail/op_backends.hpp). The portable implementation
// computes every kind of weights in every compute type on any Kokkos execution space; linear()
// falls back to the portable implementation for whatever a backend does not support. Backends may
// differ in the bits of their results, but within a backend the bits of a row do not depend on the
// batch or on the number of threads. Executor thread only.
#pragma once

#include <cstdint>

#include "gpu/detail/packed_matrix_impl.hpp"
#include "gpu/detail/packed_view.hpp"
#include "gpu/linear/linear.hpp"

namespace twill::gpu::detail {

struct linear_backend {
  /// Whether run() multiplies these weights in this compute type.
  bool (*supports)(const packed_view& w, compute_type asked);
  /// The largest number of bytes of device::scratch() that run() takes for any number of rows up to
  /// `m`. `ordered` says that the weights have a column order (weight_source::column_order).
  std::int64_t (*scratch_bytes)(const device& dev, const packed_view& w, bool ordered,
                                compute_type asked, std::int64_t m);
  void (*run)(device& dev, const linear_args& args);
  /// Computes run() and then silu_mul() in one kernel; null where the backend has no such kernel.
  /// The function returns false without doing anything for weights or row counts that the fused
  /// kernel does not support or would not speed up.
  bool (*run_silu_mul)(device& dev, const linear_args& args, tensor_ref out);
  /// Whether run() and run_silu_mul() also accept an x in f16 or bf16 in the compute types that
  /// run() supports, and run_silu_mul() also writes an `out` in f16 or bf16.
  bool reads_halves = false;
};

extern const linear_backend portable_linear; ///< portable/backends.cpp
extern const linear_backend host_linear;     ///< linear/host/linear_host.cpp

/// The type that products are really computed in: dense weights have no int8 kernels.
inline compute_type effective_compute(const packed_view& w, compute_type asked) {
  if (asked == compute_type::w8a8) asked = compute_type::int8;
  if (w.grouped()) return asked;
  if (asked == compute_type::int8) return compute_type::bf16;
  return asked == compute_type::int8x2 ? compute_type::f32 : asked;
}

/// The type that activations are rounded to before they are multiplied as floats.
inline dtype element_of(compute_type compute) {
  if (compute == compute_type::f16) return dtype::f16;
  return compute == compute_type::bf16 ? dtype::bf16 : dtype::f32;
}

/// Whether a compute type quantises activations.
inline bool is_int8(compute_type compute) {
  return compute == compute_type::int8 || compute == compute_type::int8x2;
}

} // namespace twill::gpu::detail
