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

/// Writes `node` as a regular expression, in which `unit` writes each set of characters. Returns
/// none in these cases:
/// - `unit` returns none, because it cannot write a set.
/// - `node` has an assertion such as `^`.
/// - No set of characters is repeated more than 16 times.
/// - A set is repeated more than 1024 times, or `node` has more than 4096 characters when its
///   counts are written out.
/// - Anything but a single set is repeated more than 16 times, or more than once with a count above
///   16 inside. Such nested counts can match one text in many ways.
std::optional<std::string>
counting_regex(const regex_node& node,
               const std::function<std::optional<std::string>(const code_points&)>& unit);

} // namespace twill::models::grammar
