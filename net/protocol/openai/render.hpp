// render: the token ids that a chat or completion request becomes, for routers that choose a daemon
// by its cached prefixes. Pure but for the tokenizer; on a worker thread.
//
// The routes are vLLM's, /v1/chat/completions/render and /v1/completions/render. A body is read as
// by the route that generates, and refused where that route refuses it. What the engine refuses
// later, such as a prompt beyond the context, is rendered all the same.
#pragma once

#include <string>

#include "net/protocol/codec.hpp"

namespace twill::net {

/// One object: `request_id`, `model`, `token_ids`.
result<std::string> render_chat_body(const value& body, const codec_context& context);
/// A list of such objects, one for each prompt.
result<std::string> render_completions_body(const value& body, const codec_context& context);

} // namespace twill::net
