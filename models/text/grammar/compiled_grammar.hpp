// compiled_grammar: a grammar prepared for one vocabulary. Immutable: any number of matchers and
// threads share it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/text/grammar/errc.hpp"
#include "models/text/grammar/vocabulary.hpp"

namespace twill::models::grammar {

struct compiled_grammar;
using compiled_grammar_ptr = std::shared_ptr<const compiled_grammar>;

/// Compiles a grammar text here and now, however long it takes and whatever memory it needs: for
/// the helper process and for grammars of our own. See compile.hpp for what clients send.
/// `is_json`: matchers let no object have the same key twice (writes_json of spec_text.hpp).
result<compiled_grammar_ptr> compile_here(const std::string& grammar_text,
                                          const vocabulary_ptr& tokens, bool is_json = false);

/// Bytes that the compiled form takes, about.
std::size_t memory_bytes(const compiled_grammar& grammar);

} // namespace twill::models::grammar
