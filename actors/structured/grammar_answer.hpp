// grammar_answer: a compiled grammar, or why there is none, as sessions get it. Immutable.
#pragma once

#include "models/text/grammar/compiled_grammar.hpp"
#include "models/text/grammar/vocabulary.hpp"

namespace twill::actors {

struct grammar_answer {
  models::grammar::result<models::grammar::compiled_grammar_ptr> grammar;
  models::grammar::vocabulary_ptr tokens; ///< what it was compiled for
};

} // namespace twill::actors
