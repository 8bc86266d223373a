// linear_cases: linear layers of 7B and 13B shapes, over the weight forms that checkpoints bring.
#pragma once

#include "tools/twill-bench/kernels/cases.hpp"

namespace twill::bench {

void for_each_linear_case(gpu::device& dev, const kernel_selection& selection,
                          const std::function<void(const kernel_case&)>& measure);

} // namespace twill::bench
