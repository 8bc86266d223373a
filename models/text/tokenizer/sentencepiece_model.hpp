// sentencepiece_model: a word model that uses the SentencePiece library.
#pragma once

#include <memory>
#include <string>

#include "models/text/tokenizer/sentencepiece_file.hpp"
#include "models/text/tokenizer/word_model.hpp"

namespace twill::models {

/// The word model of `file`. A token's id is its index in `file.pieces`. Fails with bad_format when
/// the library refuses the vocabulary. If the file asks for the removal of extra spaces, the
/// library removes leading spaces of each word. To keep them, pass a `lead` that is not empty: a
/// text that is encoded in front of each word and whose ids are then removed.
result<std::unique_ptr<const word_model>> make_sentencepiece_model(const sentencepiece_file& file,
                                                                   std::string lead);

} // namespace twill::models
