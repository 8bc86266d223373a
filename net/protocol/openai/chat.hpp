// parse_chat: the codec of POST /v1/chat/completions. Pure.
#pragma once

#include "net/protocol/codec.hpp"

namespace twill::net {

result<call> parse_chat(const value& body, const codec_context& context);

} // namespace twill::net
