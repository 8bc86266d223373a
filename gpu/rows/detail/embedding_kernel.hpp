// The kernel of embedding.hpp, which is called for a range of columns of one row, on any backend.
#pragma once

#include <cstdint>

#include "gpu/detail/packed_view.hpp"

namespace twill::gpu::detail {

struct embedding_span {
  packed_view w;
  const std::int32_t* ids;
  float* out;
  std::int64_t stride;
  bool accumulate;

  TWILL_KERNEL_MEMBER void put(float& to, float v) const { to = accumulate ? to + v : v; }

  TWILL_KERNEL_MEMBER void operator()(long row, long begin, long end) const {
    const std::int64_t id = ids[row];
    float* values = out + row * stride;
    if (id < 0 || id >= w.rows) { // never read outside the table
      for (long k = begin; k < end && !accumulate; ++k)
        values[k] = 0;
      return;
    }
    const std::int64_t panel = id / lanes;
    const std::int64_t lane = id % lanes;
    if (!w.grouped()) {
      for (long k = begin; k < end; ++k)
        put(values[k], dense_at(w, panel, lane, k));
      return;
    }
    for (long k = begin; k < end;) {
      const long group = k / w.group;
      const long stop = (group + 1) * w.group < end ? (group + 1) * w.group : end;
      const scale_offset t = group_params(w, panel, lane, group);
      for (; k < stop; ++k) {
        const auto code = static_cast<float>(code_at(w, panel, lane, k));
        put(values[k], t.scale * code + t.offset);
      }
    }
  }
};

struct feed_item {
  std::int32_t* ids;
  const std::int32_t* from;
  const std::int32_t* drawn;

  TWILL_KERNEL_MEMBER void operator()(const long i) const {
    if (from[i] >= 0) ids[i] = drawn[from[i]];
  }
};

} // namespace twill::gpu::detail
