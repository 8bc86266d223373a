// `messages` of Ollama's chats, in the form that templates take. Pure.
//
// Ollama's own clients give the result of a call the name of its tool (`tool_name`) or nothing at
// all, where templates want the id of the call that it answers. So calls without an id get one, and
// a result without `tool_call_id` answers the first call of its name, or else the first one, that
// has no result yet.
#pragma once

#include "config/base/value.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

/// An empty list where the request has no messages: it asks that the model be loaded or unloaded.
value_list read_ollama_messages(fields& from);

} // namespace twill::net
