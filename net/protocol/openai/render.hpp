// render: returns the token ids of a chat or completion request. A router compares these ids with
// the prefixes that each daemon has cached, in order to choose a daemon. The functions are pure,
// except that they call the tokenizer; they run on a worker thread.
//
// The routes are vLLM's, /v1/chat/completions/render and /v1/completions/render. A body is parsed
// by the codec of the route that generates, and is refused if that codec refuses it. A prompt that
// the engine would refuse later, for example because it exceeds the context, is rendered
// nevertheless.
#pragma once

#include <string>

#include "net/protocol/codec.hpp"

namespace twill::net {

/// Returns one object with `request_id`, `model` and `token_ids`.
result<std::string> render_chat_body(const value& body, const codec_context& context);
/// Returns a list with one object per prompt, each with `request_id`, `model` and `token_ids`.
result<std::string> render_completions_body(const value& body, const codec_context& context);

} // namespace twill::net
