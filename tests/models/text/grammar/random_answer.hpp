// A random answer that a grammar accepts, as sampling at a high temperature would draw it.
#pragma once

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/models/text/grammar/byte_vocabulary.hpp"

namespace twill::test {

struct drawn_answer {
  std::string text;
  bool ended = false;    ///< false: it was cut off after some thousands of steps
  bool dead_end = false; ///< the mask left no token, or one that the grammar then refused
};

inline drawn_answer random_answer(const compiled_grammar_ptr& grammar, std::mt19937& random,
                                  const vocabulary_ptr& tokens = byte_vocabulary()) {
  constexpr int n_free = 120, n_most = 3000;
  matcher at(grammar);
  std::vector<std::int32_t> mask(mask_words(tokens->size()));
  const auto end = tokens->end_ids.front();
  drawn_answer out;
  for (int step = 0; step < n_most; ++step) {
    at.fill_next_mask(mask);
    std::vector<models::token_id> allowed;
    for (models::token_id id = 0; id < tokens->size(); ++id)
      if (allows(mask, id)) allowed.push_back(id);
    out.dead_end = allowed.empty();
    if (out.dead_end) return out;
    auto next = allowed[random() % allowed.size()];
    // After `n_free` steps, an allowed token that closes something is taken in three of four steps.
    if (step > n_free && random() % 4 != 0)
      for (const auto id : {static_cast<models::token_id>('"'), static_cast<models::token_id>(']'),
                            static_cast<models::token_id>('}'), end})
        if (allows(mask, id)) next = id;
    out.dead_end = !at.accept(next);
    out.ended = next == end;
    if (out.dead_end || out.ended) return out;
    out.text += tokens->bytes[static_cast<std::size_t>(next)];
  }
  return out;
}

} // namespace twill::test
