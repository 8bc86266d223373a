// Reads Anthropic's `tools` and `tool_choice`. The functions are pure.
//
// Tools that the client runs are converted to functions in the Chat API's form. Tools with one of
// Anthropic's own types (web_search_..., bash_..., computer_...) have no schema in the request, and
// are refused by name.
#pragma once

#include "net/protocol/json/fields.hpp"
#include "net/protocol/tool_fields.hpp"

namespace twill::net {

tool_fields read_message_tools(fields& from);

} // namespace twill::net
