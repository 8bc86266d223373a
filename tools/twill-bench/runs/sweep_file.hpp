// sweep_file: a sweep as JSON text, which is both its result and the state it resumes from. Pure
// functions.
#pragma once

#include <string>

#include "tools/twill-bench/runs/sweep.hpp"

namespace twill::bench {

std::string sweep_json(const sweep& of);

/// `name` is for messages. Throws std::runtime_error for text that is no sweep.
sweep read_sweep(const std::string& text, const std::string& name);

/// True when the text is a sweep's file, and not that of a single run.
bool is_sweep(const std::string& text);

/// What of the setups forbids going on: "seed is 1 there and 2 here"; empty: nothing.
std::string setup_conflict(const sweep_setup& recorded, const sweep_setup& ordered);

} // namespace twill::bench
