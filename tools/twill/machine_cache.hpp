// machine_cache: what a machine was measured to do, kept between runs of `twill offload --plan`.
//
// One small JSON file per key in the user's cache folder, which may be deleted at any time. A file
// that is missing, old, damaged or of another key counts as nothing; one that cannot be written is
// not missed. Any thread.
#pragma once

#include <optional>
#include <string>

#include "actors/policy/offload_model.hpp"

namespace twill::tools {

/// Rates are kept as long; neighbours of a shared machine come and go.
inline constexpr int machine_cache_days = 7;

/// The rates remembered under `key`; memory sizes and names are left at their defaults.
std::optional<actors::machine_description> remembered_machine(const std::string& key);

void remember_machine(const std::string& key, const actors::machine_description& on);

} // namespace twill::tools
