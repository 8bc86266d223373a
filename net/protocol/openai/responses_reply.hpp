// responses_reply: POST /v1/responses over HTTP, as typed server-sent events or as one object.
#pragma once

#include "net/protocol/openai/response_events.hpp"

namespace twill::net {

/// `find` looks up earlier responses; a finished one goes into `store` unless `store` is false.
result<call> parse_responses(const value& body, const codec_context& context, response_store& store,
                             const std::string& tenant);

} // namespace twill::net
