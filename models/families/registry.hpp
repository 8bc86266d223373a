// registry: which family a config.json belongs to. One line per family.
#pragma once

#include <string>

#include "config/base/value.hpp"
#include "models/checkpoint.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

/// The name of the family that `model_type` or `architectures` names; `unsupported` otherwise.
result<std::string> family_of(const value& config);

/// The spec of a folder of that family.
result<model_spec> spec_of(const value& config, const checkpoint& weights);

} // namespace twill::models::families
