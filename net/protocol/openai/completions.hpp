// parse_completions: the codec of POST /v1/completions. Pure, except that an echoed prompt of ids
// is detokenized by the engine.
#pragma once

#include "net/protocol/codec.hpp"

namespace twill::net {

/// The most prompts of one call; each becomes an engine request.
inline constexpr std::size_t max_prompts_per_call = 256;

result<call> parse_completions(const value& body, const codec_context& context);

} // namespace twill::net
