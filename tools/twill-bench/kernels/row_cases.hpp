// row_cases: attention over KV, and the ops that work on one row at a time.
#pragma once

#include "tools/twill-bench/kernels/cases.hpp"

namespace twill::bench {

/// Decoding over a long context and a chunk of a prompt, in every KV type, rotary and store
/// included as cases of their own.
void for_each_attention_case(gpu::device& dev, const kernel_selection& selection,
                             const std::function<void(const kernel_case&)>& measure);

/// Attention of one decoded token a sequence at the heads of the seed models, for 1 and 32
/// sequences of 512 to 4,096 positions.
void for_each_decode_case(gpu::device& dev, const kernel_selection& selection,
                          const std::function<void(const kernel_case&)>& measure);

/// Norms, activations, choosing tokens.
void for_each_row_case(gpu::device& dev, const kernel_selection& selection,
                       const std::function<void(const kernel_case&)>& measure);

} // namespace twill::bench
