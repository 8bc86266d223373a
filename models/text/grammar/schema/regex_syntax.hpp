// regex_syntax: the syntax tree of an ECMA-262 regular expression, as JSON Schema's `pattern` uses
// it.
//
// The functions are pure; any thread may call them. Supported: classes, groups, alternation, greedy
// and lazy repetition (which match the same texts), ^ and $, \d \w \s and their complements, \xHH,
// \uHHHH, \u{H}, \cX, escapes of control characters such as \n, \p{General_Category}, lookahead
// (search_automaton.hpp accepts it only directly after ^). Back-references, lookbehind and the word
// boundaries \b and \B are refused.
#pragma once

#include <string_view>
#include <vector>

#include "models/text/grammar/schema/code_points.hpp"

namespace twill::models::grammar {

enum class regex_node_kind { empty, chars, sequence, choice, repeat, begin, end, lookahead };

struct regex_node {
  regex_node_kind kind = regex_node_kind::empty;
  code_points chars;             ///< kind::chars
  std::vector<regex_node> parts; ///< sequence, choice; one part: repeat, lookahead
  int min = 0;                   ///< repeat
  int max = -1;                  ///< repeat; -1: no bound
  bool negative = false;         ///< lookahead: (?!...)
};

/// Throws the exception refusal (bad_grammar, unsupported) with the expression in the message.
regex_node parse_regex(std::string_view pattern);

} // namespace twill::models::grammar
