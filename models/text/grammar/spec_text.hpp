// spec_text: a config::grammar_spec as the text of one grammar in XGrammar's EBNF. Pure; any
// thread.
#pragma once

#include <string>

#include "config/grammar_spec.hpp"
#include "models/text/grammar/errc.hpp"

namespace twill::models::grammar {

/// Schemas are checked strictly: what cannot be enforced is an error, never dropped. A grammar text
/// that is no GBNF is returned as it is. `repeated_items`: as schema_options has it.
result<std::string> grammar_text(const config::grammar_spec& spec, bool repeated_items = false);

/// Whether what it asks for is JSON, or calls of tools with JSON in them.
bool writes_json(const config::grammar_spec& spec);

} // namespace twill::models::grammar
