// regex_automaton: the automaton of one regular expression, by Thompson's construction of a
// non-deterministic automaton and the subset construction.
//
// The functions are pure; any thread may call them. They throw the exception refusal (too_large) if
// the non-deterministic automaton needs more than 20000 states or the deterministic one more than
// automaton::max_states, and refusal (unsupported) if the expression has a lookahead.
// search_automaton() removes lookaheads right after `^` before it calls found_anywhere().
#pragma once

#include "models/text/grammar/schema/automaton.hpp"
#include "models/text/grammar/schema/regex_syntax.hpp"

namespace twill::models::grammar {

/// Returns the automaton that accepts all strings that contain a match of `node` or, if
/// `from_begin` is true, that begin with one.
automaton found_anywhere(const regex_node& node, bool from_begin);

} // namespace twill::models::grammar
