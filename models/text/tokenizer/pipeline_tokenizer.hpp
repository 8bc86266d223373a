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
  std::vector<std::string> bytes; ///< what decoding appends, by id
  std::vector<bool> special;      ///< whether it is a control or unknown token, by id
  std::vector<bool> drops_space;  ///< tokenizer::drops_leading_space, by id; may be empty
  special_matcher specials;       ///< tokens that are found before normalizing
  special_matcher normalized;     ///< plain tokens that are found after normalizing
  normalizer normal;
  pretokenizer words_of;
  std::unique_ptr<const word_model> model;
  /// Text after a special token counts as a start (SentencePiece's dummy prefix, "legacy").
  bool restarts_after_special = false;
  std::vector<token_id> prefix, suffix; ///< the ids that add_special adds
  std::vector<token_id> end_ids;
  token_id bos = -1, eos = -1;
};

std::shared_ptr<const tokenizer> make_pipeline_tokenizer(pipeline_parts parts);

} // namespace twill::models
