// pipeline_tokenizer: a tokenizer that is composed of special tokens, a normalizer, a pre-tokenizer
// and a word model (word_model.hpp), such as BPE.
//
// Readers of vocabulary files differ only in how they fill pipeline_parts. Immutable: any thread
// may call it.
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
  std::vector<bool> special; ///< whether the token is a control token or the unknown token, by id
  std::vector<bool> drops_space; ///< tokenizer::drops_leading_space, by id; may be empty
  special_matcher specials;      ///< tokens that are found before normalizing
  special_matcher normalized;    ///< plain tokens that are found after normalizing
  normalizer normal;
  pretokenizer words_of;
  std::unique_ptr<const word_model> model;
  /// Text after a special token is treated like the beginning of a text, so it gets SentencePiece's
  /// dummy prefix ("legacy" in tokenizer_config.json).
  bool restarts_after_special = false;
  std::vector<token_id> prefix, suffix; ///< the ids that add_special adds
  std::vector<token_id> end_ids;
  token_id bos = -1, eos = -1;
};

std::shared_ptr<const tokenizer> make_pipeline_tokenizer(pipeline_parts parts);

} // namespace twill::models
