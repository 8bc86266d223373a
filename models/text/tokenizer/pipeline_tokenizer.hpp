// pipeline_tokenizer: special tokens, normalizer, pre-tokenizer and word model, put together.
//
// Readers of vocabulary files differ only in how they fill the parts. Immutable: any thread may
// call it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/text/tokenizer.hpp"
#include "models/text/tokenizer/normalizer.hpp"
#include "models/text/tokenizer/pretokenizer.hpp"
#include "models/text/tokenizer/special_matcher.hpp"
#include "models/text/tokenizer/word_model.hpp"

namespace twill::models {

struct pipeline_parts {
  std::string kind;
  std::vector<std::string> bytes; ///< per id, what decoding appends
  std::vector<bool> special;      ///< per id, control or unknown token
  std::vector<bool> drops_space;  ///< per id, see tokenizer::drops_leading_space; or empty: none
  special_matcher specials;       ///< found before normalizing
  special_matcher normalized;     ///< plain tokens that are found after it
  normalizer normal;
  pretokenizer words_of;
  std::unique_ptr<const word_model> model;
  /// Text after a special token counts as a start (SentencePiece's dummy prefix, "legacy").
  bool restarts_after_special = false;
  std::vector<token_id> prefix, suffix; ///< what add_special adds
  std::vector<token_id> end_ids;
  token_id bos = -1, eos = -1;
};

std::shared_ptr<const tokenizer> make_pipeline_tokenizer(pipeline_parts parts);

} // namespace twill::models
