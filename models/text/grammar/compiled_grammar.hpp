// compiled_grammar: a grammar prepared for one vocabulary. It is immutable and may be shared by any
// number of threads and of matchers, which follow one answer each (matcher.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/text/grammar/errc.hpp"
#include "models/text/grammar/vocabulary.hpp"

namespace twill::models::grammar {

struct compiled_grammar;
using compiled_grammar_ptr = std::shared_ptr<const compiled_grammar>;

/// Compiles a grammar text in this process, without a limit of time or memory. It is meant for the
/// helper process and for grammars that twill itself writes; for grammars from clients use
/// compile.hpp. With `is_json`, matchers do not allow an object to have one key twice (see
/// writes_json in spec_text.hpp).
result<compiled_grammar_ptr> compile_here(const std::string& grammar_text,
                                          const vocabulary_ptr& tokens, bool is_json = false);

/// The approximate memory of the compiled form.
std::size_t memory_bytes(const compiled_grammar& grammar);

} // namespace twill::models::grammar
