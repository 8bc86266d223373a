// row_cases: attention over KV, and the ops that work on one row at a time.
#pragma once

#include "tools/twill-bench/kernels/cases.hpp"

namespace twill::bench {

/// Attention of one decoded token over a long context and of a chunk of a prompt, in every KV type.
/// Rotary embedding and the store of KV are cases of their own.
void for_each_attention_case(gpu::device& dev, const kernel_selection& selection,
                             const std::function<void(const kernel_case&)>& measure);

/// Decode attention with the head counts of the seed models (seed_layers.hpp), for 1 and 32
/// sequences of 512 to 4,096 positions.
void for_each_decode_case(gpu::device& dev, const kernel_selection& selection,
                          const std::function<void(const kernel_case&)>& measure);

/// Norms, activations, choice of tokens.
void for_each_row_case(gpu::device& dev, const kernel_selection& selection,
                       const std::function<void(const kernel_case&)>& measure);

} // namespace twill::bench
