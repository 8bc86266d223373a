// vocabulary: a made-up vocabulary that encodes any text, for each kind of tokenizer.
//
// Plain values, made from the recipe alone. Pieces are letters, then pairs of frequent letters,
// then pairs of pairs, each with and without a space before: every piece is a merge of two others,
// so that any size is filled with valid merges.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/synth/recipe.hpp"

namespace twill::models::synth {

enum class piece_type : std::uint8_t { normal = 1, unknown, control, user_defined, unused, byte };

struct piece {
  std::string text; ///< raw bytes (byte-level kinds) or SentencePiece's spelling
  piece_type type = piece_type::normal;
};

struct vocabulary {
  std::vector<piece> pieces;                               ///< by id, from 0
  std::vector<std::pair<std::string, std::string>> merges; ///< by rank, spelled as pieces
  std::int32_t n_base = 0; ///< pieces of the tokenizer's own model file; the rest are added
  std::int32_t bos = -1;
  std::int32_t eos = -1;
  std::int32_t pad = -1;
};

/// True when tokens are bytes, which files spell in the byte-level alphabet.
bool is_byte_level(text_kind kind);

vocabulary make_vocabulary(const recipe& r);

/// The ids of bos, eos and pad and n_base, without making the vocabulary.
vocabulary special_ids(const recipe& r);

} // namespace twill::models::synth
