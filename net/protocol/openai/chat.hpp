// parse_chat: the codec of POST /v1/chat/completions. Pure.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/openai/generation_reply.hpp"

namespace twill::net {

/// A body as the request and the reply that it asks for.
struct asked_chat {
  actors::request request;
  reply_options options;
};
result<asked_chat> read_chat(const value& body, const codec_context& context);

result<call> parse_chat(const value& body, const codec_context& context);

/// What a body may have, for "/openapi.json".
field_rows chat_rows();

} // namespace twill::net
