// llama: Llama 1 to 3, Mistral, Qwen2, Qwen2.5 and Qwen3 as Hugging Face folders describe them.
//
// One architecture: RMS norm, rotary positions in halves, grouped heads, gated MLP. They differ in
// biases, in norms of query and key heads and in windows, which the config says.
#pragma once

#include "config/base/value.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

result<model_spec> llama_spec(const value& config, const checkpoint& weights);
result<model_spec> mistral_spec(const value& config, const checkpoint& weights);
result<model_spec> qwen2_spec(const value& config, const checkpoint& weights);
result<model_spec> qwen3_spec(const value& config, const checkpoint& weights);

} // namespace twill::models::families
