// char_bpe: byte-pair merging of a word's characters (SentencePiece-style vocabularies).
//
// Words may be whole texts: they are cut first where no token joins the two characters, which
// changes nothing, since a merge across the cut would make such a token.
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
  token_map tokens;                     ///< what merging may find, by text
  bpe merges{0};                        ///< over ids of `tokens`, and above for `extra_characters`
  token_map extra_characters;           ///< characters that are no token but take part in merges
  std::vector<std::string> extra_texts; ///< of ids from first_extra on
  token_id first_extra = 0;             ///< ids below are tokens
  std::vector<std::string> joined;      ///< texts of all tokens that a merge can make
  std::array<token_id, 256> byte_ids{}; ///< of "<0x..>" tokens, -1 where absent
  bool byte_fallback = false;           ///< unknown characters become their byte tokens
  bool cut = true;                      ///< false: merges may join byte or unknown tokens
  bool ignore_merges = false;           ///< a whole word of the vocabulary is taken without merging
  bool fuse_unknown = false;            ///< neighbouring unknown characters become one token
  token_id unknown = -1;                ///< -1: unknown characters vanish
};

/// The byte of a token "<0xE4>"; -1 when it is none.
int byte_of_token(std::string_view text);
/// Spaces where SentencePiece writes U+2581.
std::string spaces_for_marks(std::string_view text);
inline constexpr std::string_view space_mark = "\xE2\x96\x81"; // U+2581

std::unique_ptr<const word_model> make_char_bpe(char_bpe_parts parts);

/// Merges of a vocabulary by scores alone (SentencePiece BPE): two neighbours merge where their
/// union is a token, the highest score first. Fills all parts that speak of tokens and merges.
void add_score_merges(const std::vector<std::string>& texts, const std::vector<float>& scores,
                      const std::vector<bool>& usable, char_bpe_parts& parts);

} // namespace twill::models
