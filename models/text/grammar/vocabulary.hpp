// vocabulary: the tokens of a model as a grammar sees them: the bytes of each, and which end an
// answer.
//
// Immutable and shared: one for each tokenizer, made once (some ten milliseconds). Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/text/tokenizer.hpp"

namespace twill::models::grammar {

struct key_tokens;

struct vocabulary {
  /// Bytes of each token id; empty for control tokens, which no grammar lets through.
  std::vector<std::string> bytes;
  std::vector<token_id> end_ids; ///< allowed where the answer is complete
  /// A bit for each token that is nothing but JSON's white space, as in masks (matcher.hpp).
  std::vector<std::uint32_t> space;
  std::uint64_t fingerprint = 0; ///< equal for equal vocabularies

  std::shared_ptr<const key_tokens> keys; ///< what can end a key of JSON (unique_keys.hpp)

  struct index; ///< XGrammar's own tables
  std::shared_ptr<const index> tables;

  std::int32_t size() const { return static_cast<std::int32_t>(bytes.size()); }
};

using vocabulary_ptr = std::shared_ptr<const vocabulary>;

/// `logits_size`: the width of the model's logits where it is above the tokenizer's vocabulary.
/// `shown`: control tokens that a grammar may ask for by their text, such as markers of tool calls.
vocabulary_ptr make_vocabulary(const tokenizer& text, std::int32_t logits_size = 0,
                               std::span<const token_id> shown = {});
vocabulary_ptr make_vocabulary(std::vector<std::string> bytes, std::vector<token_id> end_ids);

} // namespace twill::models::grammar
