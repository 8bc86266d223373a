// word_cache: caches the ids of a text's words, so that a repeated word is encoded once.
//
// A cache is used during one call of the tokenizer, on one thread. It refers to the caller's words
// and ids: the words must not move, and ids may only be appended. Each hash value has one entry,
// which the latest word replaces. Memory is therefore bounded, and words chosen to collide cost no
// more than without a cache.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "models/text/tokenizer.hpp"

namespace twill::models {

class word_cache {
public:
  /// Makes a table for about `n_words` words. For fewer than 64 words there is no table and nothing
  /// is cached.
  explicit word_cache(std::size_t n_words) {
    if (n_words < 64) return;
    slots_.resize(std::bit_ceil(n_words < max_slots ? n_words : max_slots));
    shift_ = 64 - std::countr_zero(slots_.size());
  }

  /// Appends the ids of `word` to `ids`: copies those of an equal earlier word if the cache has it,
  /// otherwise calls `encode`.
  template <class Encode>
  void append(std::string_view word, std::vector<token_id>& ids, Encode&& encode) {
    if (slots_.empty() || word.size() > max_bytes) return encode(word, ids);
    slot& s = slots_[hash(word) >> shift_];
    if (s.size == word.size() && std::memcmp(s.data, word.data(), s.size) == 0) {
      for (std::size_t i = s.first; i < s.last; ++i)
        ids.push_back(ids[i]);
      return;
    }
    const std::size_t first = ids.size();
    encode(word, ids);
    s = {word.data(), word.size(), first, ids.size()};
  }

private:
  struct slot {
    const char* data = nullptr;
    std::size_t size = 0; ///< 0, the size of no word, marks a free entry
    std::size_t first = 0, last = 0;
  };
  static constexpr std::size_t max_slots = 16384; ///< 512 KiB
  static constexpr std::size_t max_bytes = 64;

  static std::uint64_t hash(std::string_view word) {
    std::uint64_t h = word.size();
    while (!word.empty()) {
      std::uint64_t part = 0;
      const std::size_t n = word.size() < 8 ? word.size() : 8;
      std::memcpy(&part, word.data(), n);
      h = (std::rotl(h, 23) ^ part) * 0x9E3779B97F4A7C15ULL;
      word.remove_prefix(n);
    }
    return h;
  }

  std::vector<slot> slots_;
  int shift_ = 0;
};

} // namespace twill::models
