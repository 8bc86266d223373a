// byte_level_tokenizer: byte-level BPE with special tokens, from parts that a file reader fills in.
//
// Readers (GGUF metadata, other vocabulary files) differ only in how they fill the parts.
// Immutable: any thread may call it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models/tokenizer.hpp"
#include "models/tokenizer/bpe.hpp"
#include "models/tokenizer/pretokenizer.hpp"
#include "models/tokenizer/special_matcher.hpp"

namespace twill::models {

struct string_hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
};
using token_map = std::unordered_map<std::string, token_id, string_hash, std::equal_to<>>;

struct byte_level_parts {
  std::string kind;
  std::vector<std::string> bytes;     ///< per id, what decoding appends
  std::vector<bool> special;          ///< per id, control or unknown token
  std::array<token_id, 256> byte_ids; ///< -1: the vocabulary lacks this byte
  bpe merges{0};
  bool ignore_merges = false;
  token_map words; ///< whole words by bytes; for ignore_merges only
  special_matcher specials;
  std::unique_ptr<const pretokenizer> words_of;
  std::vector<token_id> prefix, suffix; ///< what add_special adds
  std::vector<token_id> end_ids;
  token_id bos = -1, eos = -1;
  token_id unknown = -1; ///< stands for bytes that the vocabulary lacks
};

std::shared_ptr<const tokenizer> make_byte_level_tokenizer(byte_level_parts parts);

} // namespace twill::models
