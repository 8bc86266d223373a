// Reading Anthropic's `system` and `messages` into what chat templates take. Pure.
//
// Messages of one role that follow each other are one. Results of tools become messages of the role
// tool before the text of their message, and their order stays. What no model here reads (images,
// documents, blocks of Anthropic's own tools) is refused by its place.
#pragma once

#include "actors/port/engine_port.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

/// Sets `messages`, and `continue_last` where the last message is the beginning of the answer.
void read_message_list(fields& from, actors::chat_prompt& to);

} // namespace twill::net
