// word_model: the learned part of a tokenizer, which turns the words of a text into token ids.
//
// Immutable; any thread may encode. Words must be well-formed UTF-8 and not empty. For any text of
// n bytes, the time is O(n log n) and the memory a small multiple of n.
#pragma once

#include <string_view>
#include <vector>

#include "models/errc.hpp"
#include "models/text/tokenizer.hpp"

namespace twill::models {

class word_model {
public:
  virtual ~word_model() = default;
  /// Appends the ids of each word, in order.
  virtual result<nothing> encode(const std::vector<std::string_view>& words,
                                 std::vector<token_id>& ids) const = 0;
};

} // namespace twill::models
