// folder_tokenizer: reads the tokenizer of a Hugging Face folder from any of the supported kinds of
// files.
//
// The first of these is read: tokenizer.json, tokenizer.model, *.tiktoken, vocab.json with
// merges.txt. Fails with unsupported, naming the part, for parts that twill does not support, and
// with file_unreadable or bad_format for broken files.
#pragma once

#include <memory>
#include <string>

#include "config/base/value.hpp"
#include "models/text/tokenizer.hpp"
#include "models/text/tokenizer/token_table.hpp"

namespace twill::models {

result<std::shared_ptr<const tokenizer>> make_folder_tokenizer(const folder_files& files);

/// The readers of the four kinds of files.
result<std::shared_ptr<const tokenizer>> read_tokenizer_json(const folder_files& files);
result<std::shared_ptr<const tokenizer>> read_sentencepiece(const folder_files& files);
result<std::shared_ptr<const tokenizer>> read_tiktoken(const folder_files& files,
                                                       const std::string& path);
result<std::shared_ptr<const tokenizer>> read_vocab_and_merges(const folder_files& files);

} // namespace twill::models
