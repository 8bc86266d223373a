// minimal: minimises automata by Moore's algorithm.
//
// Pure; any thread.
#pragma once

#include "models/text/grammar/schema/automaton.hpp"

namespace twill::models::grammar {

/// The smallest automaton that accepts the same strings. States from which no string is accepted
/// are removed. Of an automaton with more than 400 states, only these states are removed.
automaton minimal(const automaton& a);

} // namespace twill::models::grammar
