// registry: the families that twill runs, and which of them a config.json or a GGUF file names.
//
// Pure functions over constant descriptors; any thread may call.
#pragma once

#include <span>
#include <string_view>

#include "models/families/family.hpp"

namespace twill::models::families {

/// All families.
std::span<const family* const> all();

/// The family of that name; null when there is none.
const family* find(std::string_view name);

/// The family of a folder. `architectures` decides, because folders copy `model_type` from one
/// another; a config without `architectures` goes by its `model_type`. Fails with `unsupported`.
result<const family*> family_of(const value& config);

/// The family of a GGUF file, by its general.architecture. Fails with `unsupported`, or
/// missing_metadata.
result<const family*> gguf_family_of(const gguf::metadata& meta);

/// The spec of a folder, or of a GGUF file, of whichever family it is.
result<model_spec> spec_of(const value& config, const checkpoint& weights);
result<model_spec> gguf_spec_of(const gguf::metadata& meta, const checkpoint& weights);

/// What the tokenizer of a folder needs to know; the defaults for a config of no known family.
tokenizer_hints tokenizer_hints_of(const value& config);

} // namespace twill::models::families
