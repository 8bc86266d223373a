// sentencepiece_model: the SentencePiece library as a word model.
#pragma once

#include <memory>
#include <string>

#include "models/text/tokenizer/sentencepiece_file.hpp"
#include "models/text/tokenizer/word_model.hpp"

namespace twill::models {

/// The word model of `file`, whose ids are those of `file.pieces`. Fails with bad_format when the
/// library refuses the vocabulary. Where the file asks for extra spaces to be removed, a word keeps
/// those in front if `lead` is not empty: a text that is encoded before the word and then dropped.
result<std::unique_ptr<const word_model>> make_sentencepiece_model(const sentencepiece_file& file,
                                                                   std::string lead);

} // namespace twill::models
