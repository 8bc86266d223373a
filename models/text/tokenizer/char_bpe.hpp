// char_bpe: byte-pair merging of a word's characters (SentencePiece-style vocabularies).
//
// A word may be a whole text. It is first cut between adjacent characters that no token contains
// side by side. The cut does not change the result, because a merge across the cut would create a
// token with these two characters.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer/bpe.hpp"
#include "models/text/tokenizer/byte_bpe.hpp"
#include "models/text/tokenizer/word_model.hpp"

namespace twill::models {

struct char_bpe_parts {
  token_map tokens;                     ///< the tokens that merging may make, by text
  bpe merges{0};                        ///< merges of ids of `tokens` and of `extra_characters`
  token_map extra_characters;           ///< characters that are not tokens but take part in merges
  std::vector<std::string> extra_texts; ///< texts of the ids first_extra, first_extra + 1, ...
  token_id first_extra = 0;             ///< ids below this are tokens
  std::vector<std::string> joined;      ///< texts of all tokens that a merge can make
  std::array<token_id, 256> byte_ids{}; ///< ids of the "<0x..>" tokens; -1 where absent
  bool byte_fallback = false;           ///< unknown characters become their byte tokens
  bool cut = true;                      ///< false when merges may join byte or unknown tokens
  bool ignore_merges = false; ///< a word that is a token is encoded as that token without merging
  bool fuse_unknown = false;  ///< neighbouring unknown characters become one token
  token_id unknown = -1;      ///< -1 when unknown characters are dropped
};

/// The byte of a token like "<0xE4>"; -1 for other tokens.
int byte_of_token(std::string_view text);
/// `text` with spaces in place of SentencePiece's U+2581.
std::string spaces_for_marks(std::string_view text);
inline constexpr std::string_view space_mark = "\xE2\x96\x81"; // U+2581

std::unique_ptr<const word_model> make_char_bpe(char_bpe_parts parts);

/// Derives merges from a vocabulary with scores, as in SentencePiece BPE: two adjacent tokens merge
/// if their joined text is a token, and the merge with the highest score comes first. Fills the
/// members of `parts` that hold the tokens, the merges, and the characters that take part in merges
/// without being tokens.
void add_score_merges(const std::vector<std::string>& texts, const std::vector<float>& scores,
                      const std::vector<bool>& usable, char_bpe_parts& parts);

} // namespace twill::models
