// parse_chat: the codec of POST /v1/chat/completions. The functions are pure, except that each
// reply gets a new id and the current time.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/openai/generation_reply.hpp"

namespace twill::net {

/// A parsed body: the engine request and the options of the reply.
struct asked_chat {
  actors::request request;
  reply_options options;
};
result<asked_chat> read_chat(const value& body, const codec_context& context);

result<call> parse_chat(const value& body, const codec_context& context);

/// The fields that a body may contain, for "/openapi.json".
field_rows chat_rows();

} // namespace twill::net
