#include "gpu/rows/embedding.hpp"

#include "gpu/detail/kokkos_compat.hpp"
#include "gpu/detail/launch.hpp"
#include "gpu/detail/packed_matrix_impl.hpp"

namespace twill::gpu {

void embedding(device& dev, const packed_matrix& table, const std::int32_t* ids, tensor_ref out,
               bool accumulate) {
  TWILL_ASSERT(table.readable(), "embedding: no table");
  TWILL_ASSERT(table.get().column_order() == nullptr, "embedding: the table has a column order");
  const detail::packed_view w = table.get().view;
  TWILL_ASSERT(out.type == dtype::f32 && out.rank == 2 && out.shape[1] == w.cols,
               "embedding: out must be (n, cols) f32");
  auto* to = out.as<float>();
  const std::int64_t stride = out.row_stride;
  detail::for_spans(
      dev, "embedding", out.rows(), w.cols, 4,
      KOKKOS_LAMBDA(const long row, const long begin, const long end) {
        const std::int64_t id = ids[row];
        float* values = to + row * stride;
        if (id < 0 || id >= w.rows) { // never read outside the table
          for (long k = begin; k < end && !accumulate; ++k)
            values[k] = 0;
          return;
        }
        const auto put = [accumulate](float& to, float v) { to = accumulate ? to + v : v; };
        const std::int64_t panel = id / detail::lanes;
        const std::int64_t lane = id % detail::lanes;
        if (!w.grouped()) {
          for (long k = begin; k < end; ++k)
            put(values[k], detail::dense_at(w, panel, lane, k));
          return;
        }
        for (long k = begin; k < end;) {
          const long group = k / w.group;
          const long stop = (group + 1) * w.group < end ? (group + 1) * w.group : end;
          const detail::scale_offset t = detail::group_params(w, panel, lane, group);
          for (; k < stop; ++k) {
            const auto code = static_cast<float>(detail::code_at(w, panel, lane, k));
            put(values[k], t.scale * code + t.offset);
          }
        }
      });
}

} // namespace twill::gpu
