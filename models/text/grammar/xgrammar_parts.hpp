// xgrammar_parts: the XGrammar members of this folder's opaque types. Only sources of this folder
// include it.
#pragma once

#include <xgrammar/xgrammar.h>

#include <string>

#include "models/text/grammar/compiled_grammar.hpp"
#include "models/text/grammar/vocabulary.hpp"

namespace twill::models::grammar {

struct vocabulary::index {
  xgrammar::TokenizerInfo info;
};

struct compiled_grammar {
  vocabulary_ptr tokens;
  xgrammar::CompiledGrammar parts;
  bool is_json = false; ///< answers are JSON, so matchers prevent repeated keys (unique_keys.hpp)
};

} // namespace twill::models::grammar
