// parse_completions: the codec of POST /v1/completions. The functions are pure, except that each
// reply gets a new id and the current time, and that the engine detokenizes a prompt of token ids
// which is to be echoed.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/openai/generation_reply.hpp"

namespace twill::net {

/// Most prompts of one call; each prompt becomes an engine request.
inline constexpr std::size_t max_prompts_per_call = 256;

/// A parsed body: the engine requests and the options of the reply.
struct asked_completions {
  std::vector<actors::request> requests; ///< one for each prompt
  std::vector<std::string> echoes;       ///< the prompts' texts, if the reply is to repeat them
  reply_options options;
};
result<asked_completions> read_completions(const value& body, const codec_context& context);

result<call> parse_completions(const value& body, const codec_context& context);

/// The fields that a body may contain, for "/openapi.json".
field_rows completions_rows();

} // namespace twill::net
