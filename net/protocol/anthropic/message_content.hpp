// Reads Anthropic's `system` and `messages` and converts them to the form that chat templates take.
// The functions are pure.
//
// Consecutive messages of one role are merged into one. Tool results become messages of the role
// "tool" and precede the text of their message; their order is kept. Content that no model in twill
// can read (images, documents, blocks of Anthropic's own tools) is refused with the path of the
// block.
#pragma once

#include "actors/port/engine_port.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

/// Sets `messages`. Sets `continue_last` if the last message is the beginning of the answer.
void read_message_list(fields& from, actors::chat_prompt& to);

} // namespace twill::net
