// gguf_llama: Llama, Mistral, SmolLM2, Qwen2 and Qwen3 as GGUF files describe them.
//
// Pure functions of the file. GGUF converters reorder the rows of Q and K so that rotary pairs lie
// next to each other, hence rope_kind::interleaved.
#pragma once

#include "models/checkpoint.hpp"
#include "models/gguf/metadata.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

/// The spec of a GGUF file whose general.architecture is "llama". Fails with missing_metadata,
/// bad_metadata, or unsupported for variants that twill does not run (experts, YaRN, ...).
result<model_spec> gguf_llama_spec(const gguf::metadata& meta, const checkpoint& weights);

} // namespace twill::models::families
