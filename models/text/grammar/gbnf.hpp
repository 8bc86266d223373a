// gbnf: translates grammars in llama.cpp's GBNF syntax (described in its grammars/README.md) to
// XGrammar's EBNF.
//
// XGrammar's EBNF looks similar but has no empty alternatives, no `.` for any character and no
// {,n}. The functions are pure; any thread may call them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace twill::models::grammar {

/// The grammar in XGrammar's EBNF. Returns none if the text is not valid GBNF or uses undefined
/// rules; such a text may be EBNF with XGrammar's extensions. Throws the exception refusal if no
/// text satisfies the grammar.
std::optional<std::string> ebnf_of_gbnf(std::string_view text);

} // namespace twill::models::grammar
