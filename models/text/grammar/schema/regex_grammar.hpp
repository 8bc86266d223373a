// regex_grammar: grammars of whole answers that are no JSON: regular expressions and fixed choices.
//
// Pure; any thread. Throws refusal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace twill::models::grammar {

/// All texts that `pattern` matches from beginning to end; ^ and $ at its ends change nothing.
std::string grammar_of_regex(std::string_view pattern);

std::string grammar_of_choices(const std::vector<std::string>& choices);

} // namespace twill::models::grammar
