#include "tools/twill-bench/kernels/cases.hpp"

#include "tools/twill-bench/kernels/linear_cases.hpp"
#include "tools/twill-bench/kernels/row_cases.hpp"

namespace twill::bench {

void for_each_kernel_case(gpu::device& dev, const kernel_selection& selection,
                          const std::function<void(const kernel_case&)>& measure) {
  for_each_linear_case(dev, selection, measure);
  for_each_attention_case(dev, selection, measure);
  for_each_row_case(dev, selection, measure);
}

} // namespace twill::bench
