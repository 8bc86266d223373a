// special_matcher: finds the texts of special tokens in a text. The leftmost match wins, and among
// several at one position the longest.
//
// The texts are stored in a trie, which is walked from each position, for at most the length of the
// longest text. Fill the matcher with add() and then share it: find() is const, and any thread may
// call it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "models/text/tokenizer.hpp"

namespace twill::models {

/// The classes of entries that a caller wants; values combine as bits.
enum special_class : std::uint8_t {
  special_control = 1,  ///< control tokens, and user-defined ones that look like markup
  special_plain = 2,    ///< user-defined tokens of ordinary text: runs of spaces, words
  special_template = 4, ///< control tokens that only a chat template may write ("sop")
};

/// The conditions under which a token's text matches, as in the added tokens of a tokenizer.json.
struct special_rules {
  bool single_word = false; ///< no word character on either side
  bool lstrip = false;      ///< the match includes white space before the text
  bool rstrip = false;      ///< the match includes white space after the text
  bool joins = false;       ///< the text after the token gets no dummy prefix
};

class special_matcher {
public:
  struct match {
    std::size_t begin, end; ///< bytes
    token_id id;
    bool joins;
  };

  special_matcher();
  /// Adds an entry. Empty texts are ignored; of two entries with the same text the first is kept.
  void add(std::string_view text, token_id id, special_class kind, special_rules rules = {});
  bool empty() const { return n_nodes_ == 1; }

  /// The first match at or after `from` of an entry of the given `classes`. In the byte ranges
  /// `literal` (text from users), only entries of class special_plain can match.
  std::optional<match> find(std::string_view text, std::size_t from, unsigned classes,
                            const byte_ranges& literal) const;

private:
  struct entry {
    token_id id;
    special_class kind;
    special_rules rules;
  };
  struct candidate {
    std::size_t end;
    const entry* what;
  };
  candidate longest_at(std::string_view text, std::size_t begin, unsigned classes,
                       const byte_ranges& literal, std::size_t first_range) const;

  std::unordered_map<std::uint64_t, std::uint32_t> edges_; ///< node * 256 + byte -> node
  std::unordered_map<std::uint32_t, entry> ends_;          ///< node -> the token that ends there
  std::array<bool, 256> starts_;                           ///< bytes that begin an entry
  std::uint32_t n_nodes_ = 1;
};

/// A user-defined token that a chat template could use as structure, such as "<tool_call>".
bool looks_like_markup(std::string_view text);

} // namespace twill::models
