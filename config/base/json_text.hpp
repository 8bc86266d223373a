// json_text: writes a value as JSON text, with its keys in their order and UTF-8 unescaped. The
// functions are pure.
#pragma once

#include <string>

#include "config/base/value.hpp"

namespace twill {

/// The text has `indent` spaces per level, or is one line when `indent` is 0.
std::string to_json(const value& v, int indent = 0);

} // namespace twill
