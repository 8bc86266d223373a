// gguf_chatglm: ChatGLM3 as GGUF files describe it.
//
// Pure functions of the file. GLM-4's files of before its own architecture are of this kind too.
#pragma once

#include "models/checkpoint/checkpoint.hpp"
#include "models/checkpoint/gguf/metadata.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

/// The spec of a GGUF file whose general.architecture is chatglm. Fails with missing_metadata,
/// bad_metadata, missing_tensor, or unsupported.
result<model_spec> gguf_chatglm_spec(const gguf::metadata& meta, const checkpoint& weights);

} // namespace twill::models::families
