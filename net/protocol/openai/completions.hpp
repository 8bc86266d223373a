// parse_completions: the codec of POST /v1/completions. Pure, except that an echoed prompt of ids
// is detokenized by the engine.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/openai/generation_reply.hpp"

namespace twill::net {

/// The most prompts of one call; each becomes an engine request.
inline constexpr std::size_t max_prompts_per_call = 256;

/// A body as the requests and the reply that it asks for.
struct asked_completions {
  std::vector<actors::request> requests; ///< one for each prompt
  std::vector<std::string> echoes;       ///< the prompts' texts, where the reply repeats them
  reply_options options;
};
result<asked_completions> read_completions(const value& body, const codec_context& context);

result<call> parse_completions(const value& body, const codec_context& context);

/// What a body may have, for "/openapi.json".
field_rows completions_rows();

} // namespace twill::net
