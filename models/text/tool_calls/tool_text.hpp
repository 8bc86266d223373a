// tool_text: tools and the way to call them in words, for chat templates that do not show tools.
// Pure; any thread.
#pragma once

#include <string>

#include "config/base/value.hpp"
#include "models/text/tool_calls/tool_format.hpp"

namespace twill::models::tool_calls {

/// One line of JSON for each function of `tools` ({"type": "function", "function": {...}}, or the
/// function itself), and how an answer in `format` calls one. Empty where there are no tools.
std::string tool_text(const value& tools, const tool_format& format);

} // namespace twill::models::tool_calls
