// gguf_llama: Llama, Mistral, SmolLM2, Qwen2 and Qwen3 as GGUF files describe them.
//
// Pure functions of the file. Keys begin with the architecture's name.
#pragma once

#include "models/checkpoint/checkpoint.hpp"
#include "models/checkpoint/gguf/metadata.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

/// The spec of a GGUF file whose general.architecture is llama, qwen2 or qwen3. Fails with
/// missing_metadata, bad_metadata, or unsupported for variants that twill does not run (experts,
/// YaRN, ...).
result<model_spec> gguf_llama_spec(const gguf::metadata& meta, const checkpoint& weights);

} // namespace twill::models::families
