// unigram: the most probable segmentation of a word into pieces (Kudo 2018, arXiv:1804.10959).
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/text/tokenizer/word_model.hpp"

namespace twill::models {

struct unigram_parts {
  std::vector<std::pair<std::string, double>> pieces; ///< text and log probability, by id
  token_id unknown = -1;                              ///< -1 when unknown characters are dropped
  bool byte_fallback = false;
};

/// Makes a word model (word_model.hpp) from tokens and their probabilities. It encodes a run of
/// unknown characters as one unknown token or, with byte_fallback, as byte tokens ("<0x..>").
std::unique_ptr<const word_model> make_unigram(const unigram_parts& parts);

} // namespace twill::models
