// float_text: a finite double as the shortest text that reads back as the same number. The
// functions are pure.
#pragma once

#include <string>

namespace twill {

/// As Python's repr() and json.dumps() write it: with a point or an exponent, `1.0`, `1e+16`.
std::string float_text(double number);

} // namespace twill
