#include "tools/twill-bench/kernels/cases.hpp"

#include <algorithm>

#include "tools/twill-bench/kernels/linear_cases.hpp"
#include "tools/twill-bench/kernels/row_cases.hpp"

namespace twill::bench {

const char* name_of(case_group group) {
  switch (group) {
  case case_group::linear:
    return "linear";
  case case_group::layers:
    return "layers";
  case case_group::attention:
    return "attention";
  case case_group::decode:
    return "decode";
  case case_group::rows:
    break;
  }
  return "rows";
}

void for_each_kernel_case(gpu::device& dev, const kernel_selection& selection,
                          const std::function<void(case_group, const kernel_case&)>& measure) {
  const auto cases_of = [&](case_group group, auto* for_each) {
    const auto& chosen = selection.groups;
    if (chosen.empty() || std::find(chosen.begin(), chosen.end(), group) != chosen.end())
      for_each(dev, selection, [&](const kernel_case& c) { measure(group, c); });
  };
  cases_of(case_group::linear, for_each_linear_case);
  cases_of(case_group::layers, for_each_layer_case);
  cases_of(case_group::attention, for_each_attention_case);
  cases_of(case_group::decode, for_each_decode_case);
  cases_of(case_group::rows, for_each_row_case);
}

} // namespace twill::bench
