// tokenizer_files: writes a made-up vocabulary as the files of a recipe's kind of tokenizer.
//
// Pure functions of a valid recipe. The files of a vocabulary of 150000 pieces take about 10 MB.
#pragma once

#include <string>
#include <vector>

#include "models/synth/recipe.hpp"
#include "models/synth/vocabulary.hpp"

namespace twill::models::synth {

struct text_file {
  std::string name;
  std::string bytes;
};

/// Every file of the tokenizer, tokenizer_config.json included.
std::vector<text_file> tokenizer_files(const recipe& r);

/// A piece of a byte-level vocabulary as files spell it.
std::string byte_level_spelling(const std::string& bytes);

/// tokenizer.json of a byte-level kind.
std::string tokenizer_json(const recipe& r, const vocabulary& v);

/// A SentencePiece model of the vocabulary's first `n_base` pieces.
std::string sentence_piece_model(const recipe& r, const vocabulary& v);

} // namespace twill::models::synth
