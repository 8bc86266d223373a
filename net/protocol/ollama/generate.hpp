// parse_ollama_generate: the codec of POST /api/generate. Pure.
//
// A prompt is what the user of a chat says, and is written by the model's template; with `raw`, or
// where the model has no template, it is read as it is.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

result<call> parse_ollama_generate(const value& body, const codec_context& context);
field_rows ollama_generate_rows();

} // namespace twill::net
