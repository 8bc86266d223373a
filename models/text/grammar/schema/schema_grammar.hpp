// schema_grammar: a JSON Schema as a grammar text that accepts the JSON texts of its valid values.
//
// Sound: every text of the grammar is a valid value (see README.md for what is refused). Nearly
// complete: members of larger objects come in the order of `properties`; numbers with bounds have
// no exponent. Pure; any thread. Throws refusal with keyword, JSON pointer and reason.
#pragma once

#include <string>
#include <string_view>

#include "config/grammar_spec.hpp"

namespace twill::models::grammar {

struct schema_options {
  /// Objects whose properties are declared have no others, unless the schema speaks of those.
  bool closed_objects = false;
  /// The outermost value is an object, written `key=value, ...)`.
  bool as_arguments = false;
  /// Where uniqueItems cannot be enforced, items may stand twice; else the schema is refused.
  bool repeated_items = false;
};

std::string grammar_of_schema(std::string_view schema_text, const schema_options& options);

/// Values of schemas between fixed texts (config::grammar_kind::framed).
std::string grammar_of_frames(const config::grammar_spec& spec, bool repeated_items);

/// The grammar of any JSON object.
std::string grammar_of_any_object();

} // namespace twill::models::grammar
