#include "models/text/grammar/compiled_grammar.hpp"

#include <exception>
#include <new>
#include <utility>

#include "models/text/grammar/xgrammar_parts.hpp"

namespace twill::models::grammar {
namespace {

/// Returns XGrammar's message without the source file and the time in it.
std::string plain_message(const std::exception& e) {
  std::string text = e.what();
  for (const auto* mark : {"Check failed: ", ".cc:"}) {
    if (const auto at = text.find(mark); at != std::string::npos) {
      const auto from = text.find(": ", at);
      if (from != std::string::npos) text = text.substr(from + 2);
    }
  }
  return text;
}

} // namespace

result<compiled_grammar_ptr> compile_here(const std::string& grammar_text,
                                          const vocabulary_ptr& tokens, bool is_json) {
  try {
    xgrammar::GrammarCompiler compiler(tokens->tables->info, 1);
    auto parts = compiler.CompileGrammar(grammar_text);
    return compiled_grammar_ptr(
        std::make_shared<compiled_grammar>(compiled_grammar{tokens, std::move(parts), is_json}));
  } catch (const std::bad_alloc&) {
    return failure{errc::out_of_memory, "compiling the grammar took too much memory"};
  } catch (const std::exception& e) {
    return failure{errc::bad_grammar, plain_message(e)};
  }
}

std::size_t memory_bytes(const compiled_grammar& grammar) {
  return grammar.parts.MemorySizeBytes();
}

} // namespace twill::models::grammar
