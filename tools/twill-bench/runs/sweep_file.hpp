// sweep_file: reads and writes a sweep (sweep.hpp) as JSON text. The file is both the result of the
// sweep and the state from which it resumes. The functions are pure.
#pragma once

#include <string>

#include "tools/twill-bench/runs/sweep.hpp"

namespace twill::bench {

std::string sweep_json(const sweep& of);

/// `name` is used in messages. Throws std::runtime_error when the text is not a sweep.
sweep read_sweep(const std::string& text, const std::string& name);

/// Whether the text is the file of a sweep, and not that of a single run.
bool is_sweep(const std::string& text);

/// The first difference between the setups that forbids resuming, such as "seed is 1 there and 2
/// here"; empty when there is none.
std::string setup_conflict(const sweep_setup& recorded, const sweep_setup& ordered);

} // namespace twill::bench
