// parse_ollama_generate: the codec of POST /api/generate. The functions are pure, except that each
// reply gets a new id and the current time.
//
// The prompt is treated as a user's message and formatted by the model's chat template. With `raw`,
// or if the model has no template, the prompt is used without change.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

result<call> parse_ollama_generate(const value& body, const codec_context& context);
field_rows ollama_generate_rows();

} // namespace twill::net
