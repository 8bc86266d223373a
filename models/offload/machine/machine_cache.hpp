// machine_cache: the measured rates of a machine, kept between runs.
//
// Each key has a small text file in the user's cache folder: the key, then one rate a line. Anybody
// may delete it at any time. A file that is missing, old, damaged or of another key counts as
// nothing, and a file that cannot be written is no error. Any thread.
#pragma once

#include <optional>
#include <string>

#include "models/offload/plan/cost_inputs.hpp"

namespace twill::models::offload {

/// How long rates are kept. Other users of a shared machine come and go.
inline constexpr int machine_cache_days = 7;

/// The rates that were stored under `key` (one line). Memory sizes and names keep their defaults.
std::optional<machine_description> remembered_machine(const std::string& key);

void remember_machine(const std::string& key, const machine_description& on);

} // namespace twill::models::offload
