// column_item: a kernel over ranges of columns, run column by column. The functions are pure.
#pragma once

#include "gpu/detail/half.hpp"

namespace twill::gpu::detail {

template <class Kernel>
struct column_item {
  Kernel kernel;
  long cols;
  /// `i`: the row times `cols`, plus the column.
  TWILL_KERNEL_MEMBER void operator()(const long i) const {
    const long row = i / cols;
    const long column = i - row * cols;
    kernel(row, column, column + 1);
  }
};

} // namespace twill::gpu::detail
