// matcher: the position of one answer in its grammar, and which tokens may follow.
//
// Each sequence has its own matcher, which one thread may use at a time; matchers share the
// compiled grammar. fork() makes a copy. rollback() can take back any number of tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "models/text/grammar/compiled_grammar.hpp"

namespace twill::models::grammar {

/// The number of 32-bit words of a mask over `n_tokens` tokens. Bit i % 32 of word i / 32 says
/// whether token i may follow.
constexpr std::size_t mask_words(std::int32_t n_tokens) {
  return (static_cast<std::size_t>(n_tokens) + 31) / 32;
}

class matcher {
public:
  explicit matcher(compiled_grammar_ptr grammar);
  matcher(matcher&&) noexcept;
  matcher& operator=(matcher&&) noexcept;
  ~matcher();

  /// Fills `mask`, which has mask_words(vocabulary size) words, with the tokens that may follow. If
  /// every token may follow, fills the mask too but returns false. Must not be called after
  /// is_terminated().
  bool fill_next_mask(std::span<std::int32_t> mask);
  /// Advances by a token. Returns false, without advancing, if the grammar does not allow the token
  /// here.
  bool accept(token_id token);
  /// Advances by a text, however it is divided into tokens. Returns false, without advancing, if
  /// the grammar does not allow the text here.
  bool accept_text(std::string_view bytes);
  /// Takes back the last `n` accepted tokens. A text accepted by accept_text() counts as one token.
  void rollback(int n);
  /// True when an end token was accepted, after which nothing may follow.
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
