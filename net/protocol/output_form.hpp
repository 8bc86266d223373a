// Reading what an output must look like: OpenAI's `response_format` and `text.format`, vLLM's
// `structured_outputs` and `guided_*`, llama.cpp's `grammar` and `json_schema`, Ollama's `format`,
// TGI's `grammar`. Pure.
//
// At most one of them may be given. Members that twill does not know are refused by name, for what
// they ask of the output would not hold. Whether a schema or grammar can be enforced is decided by
// the engine, which compiles it.
#pragma once

#include <cstddef>

#include "actors/port/engine_port.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

/// The most bytes of a schema, a pattern, a grammar, or all choices together.
inline constexpr std::size_t max_form_bytes = 256 * 1024;
inline constexpr std::size_t max_form_choices = 4096;

/// The fields that every route takes, into `grammar` and `grammar_field`; `grammar` stays without a
/// value when the output is free.
void read_output_form(fields& from, actors::request& to);

void add_form_rows(field_rows& to);

/// Those and `text.format` of the Responses API.
void read_response_form(fields& from, actors::request& to);

/// Those of every route and Anthropic's `output_config.format`, which was `output_format` once.
void read_message_form(fields& from, actors::request& to);

/// `format` of Ollama's API: "json", a JSON Schema, or an empty text for none.
void read_ollama_format(fields& from, actors::request& to);

/// TGI's `grammar`, {"type": "json" | "regex" | "json_schema", "value"}, called `name` in errors.
void read_typed_grammar(fields& from, const std::string& name, const value& given,
                        actors::request& to);

} // namespace twill::net
