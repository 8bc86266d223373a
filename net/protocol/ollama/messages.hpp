// Reads `messages` of Ollama's chats and converts them to the form that chat templates take. The
// functions are pure.
//
// Ollama's own clients mark a tool result with the name of the tool (`tool_name`) or with nothing,
// but templates need the id of the tool call that the result belongs to. Therefore every call
// without an id gets an id. A result without `tool_call_id` is assigned to the first call of that
// tool which has no result yet, or, if there is none, to the first call of any tool which has no
// result yet.
#pragma once

#include "config/base/value.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

/// Returns an empty list if the request has no messages; such a request only loads or unloads the
/// model.
value_list read_ollama_messages(fields& from);

} // namespace twill::net
