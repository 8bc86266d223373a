// fault_of_ids: checks the rules that the ids of every tokenizer must keep, whatever its files
// contain.
#pragma once

#include <algorithm>
#include <string>

#include "models/text/tokenizer.hpp"

namespace twill::test {

/// Describes how an id of this tokenizer is outside its vocabulary; empty if none is.
inline std::string fault_of_ids(const models::tokenizer& t) {
  using models::token_id;
  const token_id n = t.vocab_size();
  const auto is_known = [n](token_id id) { return id >= 0 && id < n; };
  if (!std::all_of(t.end_ids().begin(), t.end_ids().end(), is_known))
    return "an end id is outside the vocabulary";
  for (const token_id id : {t.bos_id(), t.eos_id()})
    if (id != -1 && !is_known(id)) return "BOS or EOS is outside the vocabulary";
  for (const bool special : {false, true}) {
    const auto ids =
        t.encode("The  caf\xC3\xA9 is <s> \xE4\xBD\xA0\xF0\x9F\x99\x82 7\n</s><|im_end|>",
                 {.add_special = special, .parse_special = special});
    if (!ids.ok()) continue;
    if (!std::all_of(ids.value().begin(), ids.value().end(), is_known))
      return "a text has ids outside the vocabulary";
    t.decode(ids.value(), !special);
  }
  return t.token_bytes(-1, true).empty() && t.token_bytes(n, true).empty() ? "" : "id n is a token";
}

} // namespace twill::test
