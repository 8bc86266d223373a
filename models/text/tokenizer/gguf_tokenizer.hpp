// gguf_tokenizer: the tokenizer that a GGUF file's metadata describes.
//
// Knows `tokenizer.ggml.model` "gpt2" (byte-level BPE) and "llama" (SentencePiece-style BPE by
// scores). Fails with unsupported for other models or pre-tokenizers, naming them, and with
// missing_metadata or bad_metadata for broken vocabularies. A file without a pre-tokenizer has
// llama.cpp's default one, with a warning; a special id of 4294967295 or -1 means none.
#pragma once

#include <memory>

#include "models/checkpoint/gguf/metadata.hpp"
#include "models/text/tokenizer.hpp"

namespace twill::models {

result<std::shared_ptr<const tokenizer>> make_gguf_tokenizer(const gguf::metadata& metadata);

} // namespace twill::models
