// parse_ollama_chat: the codec of POST /api/chat. The functions are pure, except that each reply
// gets a new id and the current time.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

result<call> parse_ollama_chat(const value& body, const codec_context& context);
field_rows ollama_chat_rows();

} // namespace twill::net
