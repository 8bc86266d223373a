// Reading chat messages and tools into what templates take. Pure.
//
// Content parts of type text are joined by a newline, as vLLM does for templates that want strings;
// other part types are refused. Arguments of earlier tool calls, JSON inside a string on the wire,
// become objects.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

/// `messages`, `tools`, `tool_choice`, `add_generation_prompt`, `chat_template_kwargs`.
void read_chat_prompt(fields& from, actors::chat_prompt& to);

/// A content member to one string; `name` is its path in error messages.
std::string read_content(fields& from, const std::string& name, const value& content);

/// {"role":..., "content":...}
value make_message(std::string role, std::string content);

} // namespace twill::net
