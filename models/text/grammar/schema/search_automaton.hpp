// search_automaton: the automaton of a JSON Schema's `pattern`. It searches: the pattern may match
// anywhere in a string.
//
// The functions are pure; any thread may call them. For a lookahead right after `^`, the automaton
// of the lookahead is intersected with that of the rest of its alternative.
#pragma once

#include <string_view>

#include "models/text/grammar/schema/automaton.hpp"

namespace twill::models::grammar {

/// Returns the automaton that accepts all strings in which `pattern` matches anywhere, as JSON
/// Schema defines `pattern`. If it cannot be made, throws the exception refusal (bad_grammar,
/// unsupported, too_large) with the expression in the message.
automaton search_automaton(std::string_view pattern);

} // namespace twill::models::grammar
