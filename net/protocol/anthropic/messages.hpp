// The codecs of POST /v1/messages and /v1/messages/count_tokens, Anthropic's Messages API. The
// functions are pure, except that each reply gets a new id and the current time, and that counting
// calls the engine's tokenizer.
//
// `max_tokens` is an upper bound: coding agents ask for more tokens than many contexts hold, so
// `max_tokens` is reduced to what the context has left. From `thinking` the template learns only
// whether to think; the budget is ignored. Fields about Anthropic's own service (service_tier,
// metadata, cache_control, ...) have no effect. Fields that would change the answer and that twill
// does not support (mcp_servers, container) are refused.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

result<call> parse_messages(const value& body, const codec_context& context);

/// Returns {"input_tokens": N}, where N is the number of prompt tokens that a reply of /v1/messages
/// to this body would state.
result<std::string> count_tokens_body(const value& body, const codec_context& context);

/// The fields that the bodies may contain, for "/openapi.json".
field_rows message_rows();
field_rows count_rows();

} // namespace twill::net
