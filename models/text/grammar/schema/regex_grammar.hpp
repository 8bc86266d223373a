// regex_grammar: makes the grammars of answers that are not JSON, but match a regular expression or
// are one of several fixed texts.
//
// The functions are pure; any thread may call them. Throws the exception refusal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace twill::models::grammar {

/// A grammar of all texts that `pattern` matches from beginning to end; ^ and $ at its ends have no
/// effect.
std::string grammar_of_regex(std::string_view pattern);

std::string grammar_of_choices(const std::vector<std::string>& choices);

} // namespace twill::models::grammar
