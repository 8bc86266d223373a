// spec_text: translates a config::grammar_spec (the JSON Schema, regular expression, grammar or
// other format that an answer must have) to the text of one grammar in XGrammar's EBNF. The
// functions are pure; any thread may call them.
#pragma once

#include <string>

#include "config/grammar_spec.hpp"
#include "models/text/grammar/errc.hpp"

namespace twill::models::grammar {

/// Schemas are checked strictly: a keyword that cannot be enforced is an error and is never
/// ignored. A grammar text that is not GBNF is returned unchanged. `repeated_items` is the option
/// of schema_options (schema/schema_grammar.hpp).
result<std::string> grammar_text(const config::grammar_spec& spec, bool repeated_items = false);

/// Whether `spec` requires answers that are JSON, or tool calls that contain JSON.
bool writes_json(const config::grammar_spec& spec);

} // namespace twill::models::grammar
