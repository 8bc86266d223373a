// machine_cache: what a machine was measured to do, kept between runs.
//
// One small text file per key in the user's cache folder, which may be deleted at any time: the
// key, then a rate a line. A file that is missing, old, damaged or of another key counts as
// nothing; one that cannot be written is not missed. Any thread.
#pragma once

#include <optional>
#include <string>

#include "models/offload/plan/cost_inputs.hpp"

namespace twill::models::offload {

/// Rates are kept as long; neighbours of a shared machine come and go.
inline constexpr int machine_cache_days = 7;

/// The rates remembered under `key` (one line); memory sizes and names are left at their defaults.
std::optional<machine_description> remembered_machine(const std::string& key);

void remember_machine(const std::string& key, const machine_description& on);

} // namespace twill::models::offload
