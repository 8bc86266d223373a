// The host implementation of the row ops. A work item is one row, or a long range of columns of one
// row. Its loops are written so that compilers vectorise them.
#include <algorithm>

#include "gpu/detail/rows_backend.hpp"
#include "gpu/host/for_items.hpp"
#include "gpu/rows/detail/elementwise_kernels.hpp"
#include "gpu/rows/detail/embedding_kernel.hpp"
#include "gpu/rows/detail/norm_kernels.hpp"
#include "gpu/rows/detail/rope_kernels.hpp"

namespace twill::gpu::detail {

namespace {

/// Calls f(row, begin, end) for column ranges that together cover (rows, cols). `work` is the cost
/// of one element in float operations.
template <class Functor>
void for_spans(device& dev, long rows, long cols, long work, const Functor& f) {
  constexpr long width = 2048;
  const long spans = (cols + width - 1) / width;
  for_host_items(dev, rows * spans, work * std::min(width, cols), [&f, spans, cols](const long i) {
    const long row = i / spans;
    const long begin = (i - row * spans) * width;
    f(row, begin, begin + width < cols ? begin + width : cols);
  });
}

template <class Kernel, long Work>
void spans(device& dev, const Kernel& kernel, long rows, long cols) {
  for_spans(dev, rows, cols, Work, kernel);
}

void activate(device& dev, const activate_span& kernel, long rows, long cols) {
  const long work = kernel.kind == activation::relu ? 1 : kernel.kind == activation::gelu ? 20 : 8;
  for_spans(dev, rows, cols, work, kernel);
}

template <class Kernel>
void norm(device& dev, const Kernel& kernel, long items) {
  for_host_items(dev, items, 4 * kernel.n, kernel);
}

void feed_tokens(device& dev, const feed_item& kernel, long items) {
  for_host_items(dev, items, 1, kernel);
}

void rope_angles(device& dev, const angle_item& kernel, long items) {
  for_host_items(dev, items, 40, kernel);
}

/// A work item on the host is one row, so that the KV block is looked up once for all heads.
struct rope_store_row {
  rope_store all;

  void operator()(const long row) const {
    for (int head = 0; head < all.n_heads; ++head)
      all.query(row, head);
    const rope_store::place at = all.place_of(row);
    for (int head = 0; head < all.kv.n_kv_heads; ++head)
      all.key_and_value(row, head, at);
  }
};

void rope_and_store(device& dev, const rope_store& kernel, long rows) {
  const long heads = kernel.n_heads + kernel.kv.n_kv_heads;
  for_host_items(dev, rows, heads * 2 * kernel.kv.head_dim, rope_store_row{kernel});
}

} // namespace

constinit const rows_backend host_rows{spans<silu_mul_span, 8>,
                                       activate,
                                       spans<scale_span, 1>,
                                       spans<gather_span, 1>,
                                       spans<embedding_span, 4>,
                                       feed_tokens,
                                       norm<rms_norm_rows>,
                                       norm<layer_norm_rows>,
                                       rope_angles,
                                       rope_and_store};

} // namespace twill::gpu::detail
