// matcher: where one answer stands in its grammar, and which tokens may follow.
//
// One per sequence, one thread at a time; the compiled grammar is shared. A copy is made by fork().
// A rollback needs no limit to be set beforehand.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "models/text/grammar/compiled_grammar.hpp"

namespace twill::models::grammar {

/// Words of a mask over `n_tokens` tokens: bit i % 32 of word i / 32 says that token i may follow.
constexpr std::size_t mask_words(std::int32_t n_tokens) {
  return (static_cast<std::size_t>(n_tokens) + 31) / 32;
}

class matcher {
public:
  explicit matcher(compiled_grammar_ptr grammar);
  matcher(matcher&&) noexcept;
  matcher& operator=(matcher&&) noexcept;
  ~matcher();

  /// Fills `mask`, mask_words(vocabulary size) words; false when every token is allowed (the mask
  /// is filled all the same). Not to be called once terminated.
  bool fill_next_mask(std::span<std::int32_t> mask);
  /// Moves on by a token; false, and unmoved, when the grammar does not allow it here.
  bool accept(token_id token);
  /// Moves on by text whatever its tokens; false, and unmoved, when the grammar does not allow it.
  bool accept_text(std::string_view bytes);
  /// Takes back the last `n` accepted tokens (texts count as one).
  void rollback(int n);
  /// True when an end token was accepted: nothing may follow.
  bool is_terminated() const;
  /// True when the answer could end here.
  bool is_complete() const;
  matcher fork() const;

private:
  struct state;
  explicit matcher(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

} // namespace twill::models::grammar
