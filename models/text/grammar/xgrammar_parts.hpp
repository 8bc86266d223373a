// xgrammar_parts: what our opaque types hold of XGrammar. Included by this folder's sources alone.
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
  bool is_json = false; ///< its answers are JSON, so that matchers watch over their keys
};

} // namespace twill::models::grammar
