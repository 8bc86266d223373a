// rows_backend: the functions behind the ops of gpu/rows, one table per backend. An op checks its
// arguments and fills its kernel, which is the same for every backend; a backend runs it over rows,
// heads or columns. The kernels are in gpu/rows/detail. The
// device chooses its table once (gpu/detail/op_backends.hpp). Executor thread only.
#pragma once

#include "gpu/device.hpp"

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
  void (*silu_mul)(device& dev, const silu_mul_span& kernel, long rows, long cols);
  void (*activate)(device& dev, const activate_span& kernel, long rows, long cols);
  void (*scale_columns)(device& dev, const scale_span& kernel, long rows, long cols);
  void (*gather_rows)(device& dev, const gather_span& kernel, long rows, long cols);
  void (*embedding)(device& dev, const embedding_span& kernel, long rows, long cols);
  void (*feed_tokens)(device& dev, const feed_item& kernel, long items);
  /// `items` counts rows, or the heads of all rows.
  void (*rms_norm)(device& dev, const rms_norm_rows& kernel, long items);
  void (*layer_norm)(device& dev, const layer_norm_rows& kernel, long rows);
  /// `items` counts the angles of all rows.
  void (*rope_angles)(device& dev, const angle_item& kernel, long items);
  void (*rope_and_store)(device& dev, const rope_store& kernel, long rows);
};

extern const rows_backend portable_rows; ///< portable/backends.cpp
extern const rows_backend host_rows;     ///< rows/host/rows_host.cpp

} // namespace twill::gpu::detail
