// regex_text: regular expressions in XGrammar's syntax, which become one automaton each.
//
// What counts characters up to some hundreds is cheap in an automaton of its own: written as
// grammar rules, tokens would go beyond a rule's end, and each of them would be judged by the
// parser. Pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "models/text/grammar/schema/regex_syntax.hpp"

namespace twill::models::grammar {

/// `unit` from `min` to `max` times (-1: no bound).
std::string regex_repeat(const std::string& unit, std::int64_t min, std::int64_t max);

/// `node` with each set of characters spelled by `unit`, which gives nothing for a set that has no
/// spelling. Nothing unless `node` counts characters beyond a few and nothing else beyond a few,
/// for counts within counts say a text in many ways; nothing either where an assertion stands
/// inside.
std::optional<std::string>
counting_regex(const regex_node& node,
               const std::function<std::optional<std::string>(const code_points&)>& unit);

} // namespace twill::models::grammar
