// responses_reply: POST /v1/responses over HTTP, as typed server-sent events or as one object.
#pragma once

#include "net/protocol/openai/response_events.hpp"

namespace twill::net {

/// A finished response goes into the context's store unless the body's `store` is false.
result<call> parse_responses(const value& body, const codec_context& context);

} // namespace twill::net
