// registry: which family a config.json or a GGUF file belongs to. One line per family.
#pragma once

#include <string>

#include "config/base/value.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/checkpoint/gguf/metadata.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

/// The name of the family that `model_type` or `architectures` names; `unsupported` otherwise.
result<std::string> family_of(const value& config);

/// The spec of a folder of that family.
result<model_spec> spec_of(const value& config, const checkpoint& weights);

/// The spec of a GGUF file, by its general.architecture; `unsupported` for those twill doesn't run.
result<model_spec> gguf_spec_of(const gguf::metadata& meta, const checkpoint& weights);

} // namespace twill::models::families
