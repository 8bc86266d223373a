// registry: the families that twill supports, and the lookup of a config.json's or GGUF file's
// family.
//
// Pure functions over constant descriptors; any thread may call.
#pragma once

#include <span>
#include <string_view>

#include "models/families/family.hpp"

namespace twill::models::families {

/// Returns all families.
std::span<const family* const> all();

/// Returns the family with this name; null if there is none.
const family* find(std::string_view name);

/// Returns the family of a folder. `architectures` decides, because folders copy `model_type` from
/// one another. `model_type` decides only if the config has no `architectures`. Fails with
/// `unsupported`.
result<const family*> family_of(const value& config);

/// Returns the family that general.architecture of a GGUF file names. Fails with `unsupported` or
/// missing_metadata.
result<const family*> gguf_family_of(const gguf::metadata& meta);

/// Make the spec of a folder or of a GGUF file, whatever its family.
result<model_spec> spec_of(const value& config, const checkpoint& weights);
result<model_spec> gguf_spec_of(const gguf::metadata& meta, const checkpoint& weights);

/// Returns what the tokenizer of a folder has to know about its family; default values if no family
/// is known for the config.
tokenizer_hints tokenizer_hints_of(const value& config);

} // namespace twill::models::families
