// schema_grammar: translates a JSON Schema to the text of a grammar, which accepts JSON texts of
// values that are valid under the schema.
//
// The grammar is sound: every text that it accepts is a valid value. It is nearly complete: only
// some orders of the members of larger objects are accepted (see object_lowering.hpp), and numbers
// with bounds have no exponent. Schemas that cannot be enforced are refused (README.md lists them)
// by throwing refusal with the keyword, its JSON pointer and the reason. The functions are pure;
// any thread may call them.
#pragma once

#include <string>
#include <string_view>

#include "config/grammar_spec.hpp"

namespace twill::models::grammar {

struct schema_options {
  /// True: an object whose schema declares properties has no other properties, unless the schema
  /// has a keyword about other properties, such as additionalProperties.
  bool closed_objects = false;
  /// The outermost value is an object and is written as `key=value, ...)`.
  bool as_arguments = false;
  /// If uniqueItems cannot be enforced: true allows repeated items, false refuses the schema.
  bool repeated_items = false;
};

std::string grammar_of_schema(std::string_view schema_text, const schema_options& options);

/// The grammar of values of several schemas between fixed texts (config::grammar_kind::framed).
std::string grammar_of_frames(const config::grammar_spec& spec, bool repeated_items);

/// The grammar of any JSON object.
std::string grammar_of_any_object();

} // namespace twill::models::grammar
