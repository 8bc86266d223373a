// unigram: the most probable cut of a word into pieces (Kudo 2018, arXiv:1804.10959).
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
  token_id unknown = -1;                              ///< -1: unknown characters vanish
  bool byte_fallback = false;
};

/// Runs of unknown characters become one unknown token, or byte tokens ("<0x..>").
std::unique_ptr<const word_model> make_unigram(const unigram_parts& parts);

} // namespace twill::models
