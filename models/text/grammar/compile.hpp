// grammar_compiler: compiles the grammars, schemas and patterns that clients send, within limits of
// time and memory.
//
// A grammar is first compiled in a helper process (twill-grammar). If it needs too much time or
// memory, the helper reaches its limit and ends, and the daemon is not affected. A grammar that the
// helper could compile is compiled again in this process, because transferring XGrammar's compiled
// form would be slower: as a text it is a hundred times as large as the grammar. Compiled grammars
// and refusals are cached by hash.
//
// Thread safety: any thread may call compile(). The call blocks for up to compile_limits::patience,
// so a thread that runs steps of the model must not make it. Concurrent calls for one grammar share
// one helper process.
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
  std::chrono::milliseconds timeout{5000}; ///< limit of processor time: structured.compile_timeout
  std::chrono::milliseconds patience{60000}; ///< limit of waiting until the grammar is compiled:
                                             ///< structured.wait_timeout
  bool repeated_items = true;                ///< structured.repeated_items, see schema_options
  std::int64_t memory_bytes = std::int64_t{1} << 30; ///< structured.compile_memory
  std::size_t max_spec_bytes = std::size_t{1}
                               << 20; ///< longer schemas and grammars are refused unread
  std::size_t cache_bytes = std::size_t{256} << 20;
  std::string helper; ///< path of twill-grammar; empty: see default_helper()
};

class grammar_compiler {
public:
  grammar_compiler(vocabulary_ptr tokens, compile_limits limits);
  ~grammar_compiler();

  /// `is_abandoned` is called about every 50 ms; once it returns true, compiling ends with
  /// errc::abandoned.
  result<compiled_grammar_ptr> compile(const config::grammar_spec& spec,
                                       const std::function<bool()>& is_abandoned = {});
  /// Returns the cached result of compile(); none if compile() would have to compile or wait.
  std::optional<result<compiled_grammar_ptr>> cached(const config::grammar_spec& spec);

  const vocabulary_ptr& tokens() const;

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace twill::models::grammar
