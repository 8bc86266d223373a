// minimal: minimises automata by Moore's algorithm.
//
// The functions are pure; any thread may call them.
#pragma once

#include "models/text/grammar/schema/automaton.hpp"

namespace twill::models::grammar {

/// The smallest automaton that accepts the same strings: equivalent states are merged, and states
/// from which no string is accepted are removed. In an automaton with more than 400 states, states
/// are removed but not merged.
automaton minimal(const automaton& a);

} // namespace twill::models::grammar
