// qwen: Qwen v1 (arXiv:2309.16609): fused c_attn with bias, an MLP pair of half the stated width,
// rotary positions with dynamic NTK and log-n attention beyond the training length.
//
// Older files use GPT-2's key names (n_embd, n_head, ...).
#pragma once

#include "config/base/value.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

result<model_spec> qwen_spec(const value& config, const checkpoint& weights);

} // namespace twill::models::families
