// detect: the tool format and the reasoning tags that a chat template tells of. Pure; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "models/text/tool_calls/tool_format.hpp"

namespace twill::models::tool_calls {

/// Nothing when the template writes calls in a way that no known format reads.
std::optional<tool_format> detect_format(std::string_view template_source);

/// Nothing when the template knows no reasoning.
std::optional<reasoning_tags> detect_reasoning(std::string_view template_source);

/// True when a rendered prompt ends inside the tags: the answer begins with reasoning.
bool ends_in_reasoning(std::string_view prompt, const reasoning_tags& tags);

} // namespace twill::models::tool_calls
