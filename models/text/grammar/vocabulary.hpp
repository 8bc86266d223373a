// vocabulary: the tokens of a model in the form that grammars need: the bytes of each token, and
// which tokens end an answer.
//
// It is immutable and may be shared by any threads. Each tokenizer has one vocabulary, which is
// made once, in some ten milliseconds.
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
  /// Bytes of each token id; empty for control tokens, which no grammar allows.
  std::vector<std::string> bytes;
  std::vector<token_id> end_ids; ///< end tokens, allowed where the answer is complete
  /// A bitmap like a mask (see matcher.hpp), with a bit for each token that consists only of JSON's
  /// white space.
  std::vector<std::uint32_t> space;
  std::uint64_t fingerprint = 0; ///< equal for equal vocabularies

  std::shared_ptr<const key_tokens> keys; ///< the tokens that can end a JSON key (unique_keys.hpp)

  struct index; ///< XGrammar's own tables
  std::shared_ptr<const index> tables;

  std::int32_t size() const { return static_cast<std::int32_t>(bytes.size()); }
};

using vocabulary_ptr = std::shared_ptr<const vocabulary>;

/// `logits_size`: the width of the model's logits, if that is larger than the tokenizer's
/// vocabulary. `shown`: control tokens whose text a grammar may require, such as <tool_call>.
vocabulary_ptr make_vocabulary(const tokenizer& text, std::int32_t logits_size = 0,
                               std::span<const token_id> shown = {});
vocabulary_ptr make_vocabulary(std::vector<std::string> bytes, std::vector<token_id> end_ids);

} // namespace twill::models::grammar
