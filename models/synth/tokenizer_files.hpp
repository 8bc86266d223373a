// tokenizer_files: writes a synthetic vocabulary as the files of the kind of tokenizer that a
// random model's recipe (recipe.hpp) demands.
//
// Pure functions of a valid recipe. The files of a vocabulary of 150000 tokens take about 10 MB.
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

/// Returns every file of the tokenizer, including tokenizer_config.json.
std::vector<text_file> tokenizer_files(const recipe& r);

/// Spells a piece of a byte-level vocabulary as tokenizer files do.
std::string byte_level_spelling(const std::string& bytes);

/// Makes tokenizer.json of a byte-level kind of tokenizer.
std::string tokenizer_json(const recipe& r, const vocabulary& v);

/// Makes a SentencePiece model of the vocabulary's first `n_base` pieces.
std::string sentence_piece_model(const recipe& r, const vocabulary& v);

} // namespace twill::models::synth
