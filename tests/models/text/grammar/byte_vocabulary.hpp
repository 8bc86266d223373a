// A vocabulary whose tokens are the single bytes, so that masks show the grammar itself and
// compiling is quick.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/grammar_spec.hpp"
#include "models/text/grammar/compiled_grammar.hpp"
#include "models/text/grammar/matcher.hpp"
#include "models/text/grammar/spec_text.hpp"

namespace twill::test {

using namespace models::grammar;

inline constexpr models::token_id end_of_answer = 256;

inline const vocabulary_ptr& byte_vocabulary() {
  static const vocabulary_ptr made = [] {
    std::vector<std::string> bytes;
    for (int i = 0; i < 256; ++i)
      bytes.emplace_back(1, static_cast<char>(i));
    bytes.emplace_back();
    return make_vocabulary(std::move(bytes), {end_of_answer});
  }();
  return made;
}

inline bool allows(const std::vector<std::int32_t>& mask, models::token_id id) {
  return (mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1) != 0;
}

/// Whether the mask allows each token of `text`, and then the end.
inline bool passes(const compiled_grammar_ptr& grammar, std::string_view text) {
  matcher at(grammar);
  std::vector<std::int32_t> mask(mask_words(byte_vocabulary()->size()));
  for (const char c : text) {
    at.fill_next_mask(mask);
    const auto id = static_cast<models::token_id>(static_cast<unsigned char>(c));
    if (!allows(mask, id) || !at.accept(id)) return false;
  }
  at.fill_next_mask(mask);
  return allows(mask, end_of_answer) && at.accept(end_of_answer) && at.is_terminated();
}

inline config::grammar_spec schema_spec(std::string text, bool closed = false) {
  config::grammar_spec spec;
  spec.kind = config::grammar_kind::json_schema;
  spec.text = std::move(text);
  spec.closed_objects = closed;
  return spec;
}

/// The compiled grammar, or the reason why it cannot be compiled.
inline models::grammar::result<compiled_grammar_ptr>
compiled(const config::grammar_spec& spec, const vocabulary_ptr& tokens = byte_vocabulary()) {
  const auto text = grammar_text(spec);
  if (!text.ok()) return text.error();
  return compile_here(text.value(), tokens, writes_json(spec));
}

} // namespace twill::test
