// machine_cache: stores the measured rates of a machine (compute, copies, disk) between runs.
//
// The rates of each key (see machine_key() in measured_machine.hpp) are in a small text file in the
// user's cache folder: the key on the first line, then one rate per line. The files may be deleted
// at any time. A file that is missing, too old, damaged or written for another key is ignored, and
// failing to write a file is no error. Any thread may call these functions.
#pragma once

#include <optional>
#include <string>

#include "models/offload/plan/cost_inputs.hpp"

namespace twill::models::offload {

/// Rates older than this many days are measured again, because the load that other users put on a
/// shared machine changes.
inline constexpr int machine_cache_days = 7;

/// The rates that were stored under `key` (one line). Memory sizes and names keep their defaults.
std::optional<machine_description> remembered_machine(const std::string& key);

void remember_machine(const std::string& key, const machine_description& on);

} // namespace twill::models::offload
