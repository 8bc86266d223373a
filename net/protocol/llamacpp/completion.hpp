// parse_completion: the codec of llama.cpp's POST /completion and /completions. Pure, but for the
// seed it draws and what the engine's tokenizer does for prompts and biases.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

result<call> parse_completion(const value& body, const codec_context& context);

/// What a body may have, for "/openapi.json".
field_rows completion_rows();

} // namespace twill::net
