// char_bpe: byte-pair merging of a word's characters (SentencePiece-style vocabularies).
//
// Words may be whole texts. They are cut first between characters that no token joins; the result
// is the same, since a merge across the cut would make such a token.
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
  std::vector<std::string> extra_texts; ///< texts of the ids from first_extra on
  token_id first_extra = 0;             ///< ids below this are tokens
  std::vector<std::string> joined;      ///< texts of all tokens that a merge can make
  std::array<token_id, 256> byte_ids{}; ///< ids of the "<0x..>" tokens; -1 where absent
  bool byte_fallback = false;           ///< unknown characters become their byte tokens
  bool cut = true;                      ///< false when merges may join byte or unknown tokens
  bool ignore_merges = false;           ///< a whole word of the vocabulary is taken without merging
  bool fuse_unknown = false;            ///< neighbouring unknown characters become one token
  token_id unknown = -1;                ///< -1 when unknown characters are dropped
};

/// The byte of a token like "<0xE4>"; -1 for other tokens.
int byte_of_token(std::string_view text);
/// `text` with spaces in place of SentencePiece's U+2581.
std::string spaces_for_marks(std::string_view text);
inline constexpr std::string_view space_mark = "\xE2\x96\x81"; // U+2581

std::unique_ptr<const word_model> make_char_bpe(char_bpe_parts parts);

/// Merges of a vocabulary by scores alone (SentencePiece BPE): two neighbours merge where their
/// union is a token, the highest score first. Fills all parts that speak of tokens and merges.
void add_score_merges(const std::vector<std::string>& texts, const std::vector<float>& scores,
                      const std::vector<bool>& usable, char_bpe_parts& parts);

} // namespace twill::models
