// value to JSON text, UTF-8 kept, keys in their order. Pure.
#pragma once

#include <string>

#include "config/base/value.hpp"

namespace twill::models::synth {

/// `indent` spaces per level; 0: one line.
std::string to_json(const value& v, int indent = 0);

} // namespace twill::models::synth
