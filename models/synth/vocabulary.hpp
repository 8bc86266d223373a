// vocabulary: makes a synthetic vocabulary that encodes any text, for each kind of tokenizer.
//
// Plain values, made from a random model's recipe (recipe.hpp) alone. After the single letters and
// bytes come pairs of frequent letters, then pairs of such pairs, each with and without a space
// before. Each of these pairs is a merge of two other tokens, so that a vocabulary of any size has
// valid merges.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/synth/recipe.hpp"

namespace twill::models::synth {

enum class piece_type : std::uint8_t { normal = 1, unknown, control, user_defined, unused, byte };

struct piece {
  std::string text; ///< raw bytes (byte-level kinds) or the spelling in a SentencePiece model
  piece_type type = piece_type::normal;
};

struct vocabulary {
  std::vector<piece> pieces;                               ///< by id, from 0
  std::vector<std::pair<std::string, std::string>> merges; ///< by rank, in the spelling of the
                                                           ///< pieces
  std::int32_t n_base = 0; ///< pieces in the tokenizer's own model file; the other pieces are added
                           ///< tokens
  std::int32_t bos = -1;
  std::int32_t eos = -1;
  std::int32_t pad = -1;
};

/// True for kinds whose tokens are bytes, which files spell in the byte-level alphabet.
bool is_byte_level(text_kind kind);

vocabulary make_vocabulary(const recipe& r);

/// Returns a vocabulary in which only bos, eos, pad and n_base are set.
vocabulary special_ids(const recipe& r);

} // namespace twill::models::synth
