// detect: derives the tool format and the reasoning tags of a model from its chat template. The
// functions are pure; any thread may call them.
#pragma once

#include <optional>
#include <string_view>

#include "models/text/tool_calls/tool_format.hpp"

namespace twill::models::tool_calls {

/// Returns none if no known format matches the way in which the template writes calls.
std::optional<tool_format> detect_format(std::string_view template_source);

/// Returns none if the template has no reasoning tags.
std::optional<reasoning_tags> detect_reasoning(std::string_view template_source);

/// True if a rendered prompt ends inside the tags, so that the answer begins with reasoning.
bool ends_in_reasoning(std::string_view prompt, const reasoning_tags& tags);

} // namespace twill::models::tool_calls
