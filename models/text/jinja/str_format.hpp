// str_format: Python's str.format, as far as templates use it: {}, {0}, {name}, !r, !s, and format
// specifications of fill, alignment, sign, width, precision and the types s d f e g x o.
#pragma once

#include "models/text/jinja/runtime.hpp"
#include "models/text/jinja/value.hpp"

namespace twill::models::jinja {

text str_format(runtime& rt, const text& format, const call_args& args);

} // namespace twill::models::jinja
