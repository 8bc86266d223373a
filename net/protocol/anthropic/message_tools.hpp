// Reading Anthropic's `tools` and `tool_choice`. Pure.
//
// Tools of the client become functions in chat's form. Those with a type of Anthropic's own
// (web_search_..., bash_..., computer_...) have no schema here and are refused by name.
#pragma once

#include "net/protocol/json/fields.hpp"
#include "net/protocol/tool_fields.hpp"

namespace twill::net {

tool_fields read_message_tools(fields& from);

} // namespace twill::net
