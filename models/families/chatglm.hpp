// chatglm: ChatGLM3 (and ChatGLM2's common form): multi-query groups, rotary positions interleaved
// on the first half of each head, fused biased QKV, gate and up in one matrix.
//
// rope_ratio multiplies the base, as ChatGLM3-6B-32k's code does.
#pragma once

#include "config/base/value.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

result<model_spec> chatglm_spec(const value& config, const checkpoint& weights);

} // namespace twill::models::families
