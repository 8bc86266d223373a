// responses_reply: replies to POST /v1/responses, and stored responses read over HTTP, as typed
// server-sent events or as one object.
#pragma once

#include "net/protocol/openai/response_events.hpp"

namespace twill::net {

/// The codec of POST /v1/responses. The response will be stored unless the body's `store` is false.
result<call> parse_responses(const value& body, const codec_context& context);

/// Makes an encoder that rebuilds the stream of a stored response from all of its stored events,
/// and emits only the stream's events with numbers above `after` (-1: all).
std::unique_ptr<reply_encoder> stored_response_stream(response_turn turn, std::int64_t after);

} // namespace twill::net
