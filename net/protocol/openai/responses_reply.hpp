// responses_reply: replies to POST /v1/responses, and stored responses read over HTTP, as typed
// server-sent events or as one object.
#pragma once

#include "net/protocol/openai/response_events.hpp"

namespace twill::net {

/// The codec of POST /v1/responses. The response will be stored unless the body's `store` is false.
result<call> parse_responses(const value& body, const codec_context& context);

/// The events of a stored response with numbers above `after`, made anew from all of its events;
/// -1: all.
std::unique_ptr<reply_encoder> stored_response_stream(response_turn turn, std::int64_t after);

} // namespace twill::net
