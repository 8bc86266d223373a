// gguf_tokenizer: builds the tokenizer that a GGUF file's metadata describe.
//
// It supports the values "gpt2" (byte-level BPE) and "llama" (SentencePiece-style BPE by scores) of
// `tokenizer.ggml.model`. Other models and unknown pre-tokenizers fail with unsupported and are
// named; broken vocabularies fail with missing_metadata or bad_metadata. For a file without a
// pre-tokenizer, llama.cpp's default is used and a warning is logged. A special id of 4294967295 or
// -1 means that there is no such token.
#pragma once

#include <memory>

#include "models/checkpoint/gguf/metadata.hpp"
#include "models/text/tokenizer.hpp"

namespace twill::models {

result<std::shared_ptr<const tokenizer>> make_gguf_tokenizer(const gguf::metadata& metadata);

} // namespace twill::models
