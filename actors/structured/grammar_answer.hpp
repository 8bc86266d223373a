// grammar_answer: a compiled grammar, or the reason why there is none, as it is sent to sessions.
// Immutable.
#pragma once

#include "models/text/grammar/compiled_grammar.hpp"
#include "models/text/grammar/vocabulary.hpp"

namespace twill::actors {

struct grammar_answer {
  models::grammar::result<models::grammar::compiled_grammar_ptr> grammar;
  models::grammar::vocabulary_ptr tokens; ///< the vocabulary for which the grammar was compiled
};

} // namespace twill::actors
