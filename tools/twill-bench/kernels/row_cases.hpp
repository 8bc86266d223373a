// row_cases: attention over KV, and the ops that work on one row at a time.
#pragma once

#include "tools/twill-bench/kernels/cases.hpp"

namespace twill::bench {

/// Decoding over a long context and a chunk of a prompt, in every KV type, rotary and store
/// included as cases of their own.
void for_each_attention_case(gpu::device& dev, const kernel_selection& selection,
                             const std::function<void(const kernel_case&)>& measure);

/// Norms, activations, choosing tokens.
void for_each_row_case(gpu::device& dev, const kernel_selection& selection,
                       const std::function<void(const kernel_case&)>& measure);

} // namespace twill::bench
