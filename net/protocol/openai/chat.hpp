// POST /v1/chat/completions: the body to a call. Pure.
#pragma once

#include "net/protocol/codec.hpp"

namespace twill::net {

result<call> parse_chat(const value& body, const codec_context& context);

} // namespace twill::net
