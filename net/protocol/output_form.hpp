// Reads the fields that constrain the format of an output: OpenAI's `response_format` and
// `text.format`, vLLM's `structured_outputs` and `guided_*`, llama.cpp's `grammar` and
// `json_schema`, Ollama's `format`, TGI's `grammar`. The functions are pure.
//
// A request may use at most one of these fields. Unknown members inside them are refused by name,
// because the output would ignore them. The engine decides whether it can enforce a schema or
// grammar when it compiles the schema or grammar.
#pragma once

#include <cstddef>

#include "actors/port/engine_port.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

/// Most bytes of a schema, a pattern, a grammar, or all choices together.
inline constexpr std::size_t max_form_bytes = 256 * 1024;
inline constexpr std::size_t max_form_choices = 4096;

/// Reads the format fields that every route accepts, into `to.grammar` and `to.grammar_field`. If
/// the request does not constrain its output, `to.grammar` has no value.
void read_output_form(fields& from, actors::request& to);

void add_form_rows(field_rows& to);

/// Reads the fields that read_output_form() reads, and `text.format` of the Responses API.
void read_response_form(fields& from, actors::request& to);

/// Reads the fields that read_output_form() reads, and Anthropic's `output_config.format` or its
/// older name `output_format`.
void read_message_form(fields& from, actors::request& to);

/// Reads `format` of Ollama's API: "json", a JSON Schema, or an empty text for no constraint.
void read_ollama_format(fields& from, actors::request& to);

/// Reads TGI's `grammar`, {"type": "json"|"regex"|"json_schema", "value"}. `name` is its path in
/// error messages.
void read_typed_grammar(fields& from, const std::string& name, const value& given,
                        actors::request& to);

} // namespace twill::net
