// boolean_operations: intersection, union and complement of automata.
//
// The functions are pure; any thread may call them. The results are minimal automata. The functions
// throw the exception refusal (too_large) if the product of two automata needs more than four times
// automaton::max_states states before it is minimised.
#pragma once

#include "models/text/grammar/schema/automaton.hpp"

namespace twill::models::grammar {

/// Returns the automaton that accepts the strings that both automata accept.
automaton intersection(const automaton& a, const automaton& b);
/// Returns the automaton that accepts the strings that at least one of the automata accepts.
automaton united(const automaton& a, const automaton& b);
/// Returns the automaton that accepts the strings that `a` does not accept.
automaton complement(const automaton& a);

} // namespace twill::models::grammar
