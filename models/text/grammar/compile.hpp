// grammar_compiler: what clients ask for as compiled grammars, within limits of time and memory.
//
// Compiling happens in a helper process (twill-grammar) first, so that a grammar that explodes ends
// at its limit and harms nobody. What compiled there is compiled once more here: as a text
// XGrammar's compiled form is a hundred times as large, and reading it takes longer. Results and
// refusals are cached by hash.
//
// Thread safety: any thread may call compile(); it blocks for up to its patience, so never call it
// from a step's path. Callers that ask for the same grammar at the same time share one helper.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "config/grammar_spec.hpp"
#include "models/text/grammar/compiled_grammar.hpp"

namespace twill::models::grammar {

struct compile_limits {
  std::chrono::milliseconds timeout{5000};   ///< of processor time: structured.compile_timeout
  std::chrono::milliseconds patience{60000}; ///< until it has compiled: structured.wait_timeout
  bool repeated_items = true; ///< structured.repeated_items, as schema_options has it
  std::int64_t memory_bytes = std::int64_t{1} << 30; ///< structured.compile_memory
  std::size_t max_spec_bytes = std::size_t{1}
                               << 20; ///< longer schemas and grammars are refused unread
  std::size_t cache_bytes = std::size_t{256} << 20;
  std::string helper; ///< path of twill-grammar; empty: beside the running program
};

class grammar_compiler {
public:
  grammar_compiler(vocabulary_ptr tokens, compile_limits limits);
  ~grammar_compiler();

  /// `is_abandoned` is asked every 50 ms or so; once it says true, compiling ends.
  result<compiled_grammar_ptr> compile(const config::grammar_spec& spec,
                                       const std::function<bool()>& is_abandoned = {});
  /// What compile() would answer from its cache; nothing where it would have to compile or wait.
  std::optional<result<compiled_grammar_ptr>> cached(const config::grammar_spec& spec);

  const vocabulary_ptr& tokens() const;

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace twill::models::grammar
