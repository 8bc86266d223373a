// neighbour_set: the pairs of characters that are adjacent in some token of a vocabulary.
//
// A text may be cut between two characters that are adjacent in no token, and its parts encoded
// separately, because a merge across the cut would create a token that contains the pair. The set
// is a bitmap of hashes; a false positive only prevents a cut. Immutable after construction.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer/unicode.hpp"

namespace twill::models {

class neighbour_set {
public:
  explicit neighbour_set(const std::vector<std::string>& texts) {
    std::size_t n = 64;
    for (const std::string& text : texts)
      n += text.size();
    bits_.resize(std::bit_ceil(n * 16) / 64);
    for (const std::string& text : texts)
      for (std::size_t at = 0, next = 0; at < text.size(); at = next) {
        next = at + character_length(text[at]);
        if (next < text.size()) set(key(text, at, next, next + character_length(text[next])));
      }
  }

  /// Whether the characters at bytes [begin, middle) and [middle, end) of `text` are adjacent in
  /// some token. May be wrong only by returning true.
  bool has(std::string_view text, std::size_t begin, std::size_t middle, std::size_t end) const {
    const std::size_t bit = place(key(text, begin, middle, end));
    return (bits_[bit / 64] >> (bit % 64) & 1) != 0;
  }

private:
  static std::uint64_t key(std::string_view text, std::size_t begin, std::size_t middle,
                           std::size_t end) {
    std::uint64_t k = 0;
    for (std::size_t i = begin; i < middle; ++i)
      k = k << 8 | static_cast<std::uint8_t>(text[i]);
    for (std::size_t i = middle; i < end; ++i)
      k = k << 8 | static_cast<std::uint8_t>(text[i]);
    return k;
  }
  std::size_t place(std::uint64_t k) const {
    return static_cast<std::size_t>((k * 0x9E3779B97F4A7C15ULL) >> 20) & (bits_.size() * 64 - 1);
  }
  void set(std::uint64_t k) { bits_[place(k) / 64] |= std::uint64_t{1} << (place(k) % 64); }

  std::vector<std::uint64_t> bits_;
};

} // namespace twill::models
