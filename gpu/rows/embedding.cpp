#include "gpu/rows/embedding.hpp"

#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/packed_matrix_impl.hpp"
#include "gpu/detail/rows_backend.hpp"
#include "gpu/rows/detail/embedding_kernel.hpp"

namespace twill::gpu {

void embedding(device& dev, const packed_matrix& table, const std::int32_t* ids, tensor_ref out,
               bool accumulate) {
  TWILL_ASSERT(table.readable(), "embedding: no table");
  TWILL_ASSERT(table.get().column_order() == nullptr, "embedding: the table has a column order");
  const detail::packed_view w = table.get().view;
  TWILL_ASSERT(out.type == dtype::f32 && out.rank == 2 && out.shape[1] == w.cols,
               "embedding: out must be (n, cols) f32");
  detail::run_op<&detail::rows_backend::embedding>(
      dev, detail::embedding_span{w, ids, out.as<float>(), out.row_stride, accumulate}, out.rows(),
      w.cols);
}

void feed_tokens(device& dev, std::int32_t* ids, const std::int32_t* from, std::int64_t n,
                 const std::int32_t* drawn) {
  TWILL_ASSERT(n == 0 || (ids != nullptr && from != nullptr && drawn != nullptr),
               "feed_tokens: an array is missing");
  detail::run_op<&detail::rows_backend::feed_tokens>(dev, detail::feed_item{ids, from, drawn}, n);
}

} // namespace twill::gpu
