// rows_backend: the functions behind the ops of gpu/rows, one table per backend. An op checks its
// arguments and stores them in a kernel object of gpu/rows/detail. A backend runs that kernel over
// rows, heads or columns, or passes its arguments to a kernel of its own. The device chooses its
// tables once (gpu/detail/op_backends.hpp). Executor thread only.
#pragma once

#include "gpu/detail/op.hpp"

namespace twill::gpu::detail {

struct silu_mul_span;
struct activate_span;
struct scale_span;
struct gather_span;
struct embedding_span;
struct feed_item;
struct rms_norm_rows;
struct layer_norm_rows;
struct angle_item;
struct rope_store;

struct rows_backend {
  op<const silu_mul_span&, long, long> silu_mul; // rows, columns
  op<const activate_span&, long, long> activate;
  op<const scale_span&, long, long> scale_columns;
  op<const gather_span&, long, long> gather_rows;
  op<const embedding_span&, long, long> embedding;
  op<const feed_item&, long> feed_tokens;      // items
  op<const rms_norm_rows&, long> rms_norm;     // rows, or the heads of all rows
  op<const layer_norm_rows&, long> layer_norm; // rows
  op<const angle_item&, long> rope_angles;     // the angles of all rows
  op<const rope_store&, long> rope_and_store;  // rows
};

extern const rows_backend portable_rows; ///< portable/backends.cpp
extern const rows_backend host_rows;     ///< rows/host/rows_host.cpp

} // namespace twill::gpu::detail
