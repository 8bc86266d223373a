// POST /v1/completions: the body to a call. Pure but for detokenizing an echoed id prompt.
#pragma once

#include "net/protocol/codec.hpp"

namespace twill::net {

/// Prompts of one call at most; each is an engine request.
inline constexpr std::size_t max_prompts_per_call = 256;

result<call> parse_completions(const value& body, const codec_context& context);

} // namespace twill::net
