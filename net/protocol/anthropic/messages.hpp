// POST /v1/messages, and /v1/messages/count_tokens: Anthropic's Messages API. Pure, but for the
// tokenizer that counts.
//
// `max_tokens` is a bound: coding agents send more than many a context holds, so it is shortened to
// what the context leaves. Of `thinking`, the template gets whether to think; no model here knows a
// budget. Fields of Anthropic's own service (service_tier, metadata, cache_control, ...) have no
// effect; what would change the answer and is not there (mcp_servers, container) is refused.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

result<call> parse_messages(const value& body, const codec_context& context);

/// {"input_tokens": N}: as many as the usage of such a request says.
result<std::string> count_tokens_body(const value& body, const codec_context& context);

/// What the bodies may have, for "/openapi.json".
field_rows message_rows();
field_rows count_rows();

} // namespace twill::net
