// folder_tokenizer: the tokenizer that a Hugging Face folder holds, whatever kind of files it has.
//
// Looks for tokenizer.json, tokenizer.model, *.tiktoken, vocab.json with merges.txt, in this order.
// Fails with unsupported for parts that twill does not know, naming them, and with file_unreadable
// or bad_format for broken files.
#pragma once

#include <memory>
#include <string>

#include "config/base/value.hpp"
#include "models/text/tokenizer.hpp"
#include "models/text/tokenizer/token_table.hpp"

namespace twill::models {

result<std::shared_ptr<const tokenizer>> make_folder_tokenizer(const folder_files& files);

/// One reader per kind of file.
result<std::shared_ptr<const tokenizer>> read_tokenizer_json(const folder_files& files);
result<std::shared_ptr<const tokenizer>> read_sentencepiece(const folder_files& files);
result<std::shared_ptr<const tokenizer>> read_tiktoken(const folder_files& files,
                                                       const std::string& path);
result<std::shared_ptr<const tokenizer>> read_vocab_and_merges(const folder_files& files);

} // namespace twill::models
