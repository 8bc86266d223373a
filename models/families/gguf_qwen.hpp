// gguf_qwen: Qwen (v1) as GGUF files describe it.
//
// Pure functions of the file. The mathematics are llama.cpp's: such a file holds neither Qwen's
// dynamic NTK nor its log-n scaling, so that past the trained length (2048 or 8192 tokens, which
// the file does not tell) answers differ from those of Qwen's own folder.
#pragma once

#include "models/checkpoint/checkpoint.hpp"
#include "models/checkpoint/gguf/metadata.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

/// The spec of a GGUF file whose general.architecture is qwen. Fails with missing_metadata,
/// bad_metadata, missing_tensor, or unsupported.
result<model_spec> gguf_qwen_spec(const gguf::metadata& meta, const checkpoint& weights);

} // namespace twill::models::families
