// gbnf: grammars as llama.cpp writes them (its grammars/README.md), for XGrammar.
//
// XGrammar's EBNF looks alike but has no empty alternatives, no `.` for any character and no {,n}.
// Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace twill::models::grammar {

/// The grammar in XGrammar's EBNF. Nothing where the text is no GBNF, or uses rules that it does
/// not define: it may be EBNF with what XGrammar adds. Throws refusal when no text satisfies it.
std::optional<std::string> ebnf_of_gbnf(std::string_view text);

} // namespace twill::models::grammar
