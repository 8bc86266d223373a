// regex_text: writes regular expressions in XGrammar's syntax. XGrammar compiles each of them to
// one automaton.
//
// An expression that counts characters up to some hundreds is cheap as a separate automaton. If it
// were written as grammar rules, many tokens would extend beyond the end of a rule, and XGrammar's
// parser would have to check each of these tokens for every mask. The functions are pure; any
// thread may call them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "models/text/grammar/schema/regex_syntax.hpp"

namespace twill::models::grammar {

/// Repeats `unit` from `min` to `max` times; max -1: no bound.
std::string regex_repeat(const std::string& unit, std::int64_t min, std::int64_t max);

/// Writes `node` as a regular expression, with each set of characters written by `unit`, which
/// returns none for a set that it cannot write. Returns none in three cases: if `node` has no
/// repetition of characters with a count above a few; if it repeats anything other than characters
/// more than a few times, because nested counts can match one text in many ways; and if an
/// assertion is used inside the expression.
std::optional<std::string>
counting_regex(const regex_node& node,
               const std::function<std::optional<std::string>(const code_points&)>& unit);

} // namespace twill::models::grammar
