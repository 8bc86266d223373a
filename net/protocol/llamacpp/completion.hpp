// parse_completion: the codec of llama.cpp's POST /completion and /completions. The function is
// pure, except that it draws a seed and calls the engine's tokenizer for prompts and for
// `logit_bias`.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

result<call> parse_completion(const value& body, const codec_context& context);

/// The fields that a body may contain, for "/openapi.json".
field_rows completion_rows();

} // namespace twill::net
