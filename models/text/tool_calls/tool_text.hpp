// tool_text: describes tools, and how to call them, in English text, for chat templates that do not
// write tools into the prompt. The functions are pure; any thread may call them.
#pragma once

#include <string>

#include "config/base/value.hpp"
#include "models/text/tool_calls/tool_format.hpp"

namespace twill::models::tool_calls {

/// Returns one line of JSON for each function of `tools` (whose entries are {"type": "function",
/// "function": {...}} or the function itself), followed by an explanation of how an answer in
/// `format` calls a function. Empty if there are no tools.
std::string tool_text(const value& tools, const tool_format& format);

} // namespace twill::models::tool_calls
