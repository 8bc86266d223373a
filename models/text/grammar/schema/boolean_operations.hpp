// boolean_operations: what two automata accept together, and what one does not accept.
//
// Pure; any thread. The results are minimal. Throws refusal (too_large) if a product needs more
// than four times automaton::max_states states before it is minimised.
#pragma once

#include "models/text/grammar/schema/automaton.hpp"

namespace twill::models::grammar {

/// Accepts the strings that both automata accept.
automaton intersection(const automaton& a, const automaton& b);
/// Accepts the strings that at least one of the automata accepts.
automaton united(const automaton& a, const automaton& b);
/// Accepts the strings that `a` does not accept.
automaton complement(const automaton& a);

} // namespace twill::models::grammar
