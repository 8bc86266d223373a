// byte_bpe: byte-pair merging of a word's bytes (GPT-2, tiktoken).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "models/text/tokenizer/bpe.hpp"
#include "models/text/tokenizer/word_model.hpp"

namespace twill::models {

struct string_hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
};
using token_map = std::unordered_map<std::string, token_id, string_hash, std::equal_to<>>;

struct byte_bpe_parts {
  std::array<token_id, 256> byte_ids{}; ///< -1 for a byte that the vocabulary lacks
  bpe merges{0};
  bool ignore_merges = false;
  token_map words;       ///< ids of whole words by their bytes; used only with ignore_merges
  token_id unknown = -1; ///< the id for bytes that the vocabulary lacks
};

std::unique_ptr<const word_model> make_byte_bpe(byte_bpe_parts parts);

} // namespace twill::models
