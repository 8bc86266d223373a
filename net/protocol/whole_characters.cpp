#include "net/protocol/whole_characters.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "net/protocol/json/utf8.hpp"

namespace twill::net {
namespace {

constexpr std::size_t longest_character = 4;

/// True if the incomplete byte sequence `begun` is a prefix of some character.
bool may_become_character(std::string_view begun) {
  if (begun.size() >= longest_character) return false;
  // Each range of bytes that may follow a lead byte has one of these values at an end.
  for (const char second : {'\x80', '\x90', '\x9F', '\xA0', '\xBF'}) {
    std::string tried(begun);
    if (tried.size() == 1) tried += second;
    while (tried.size() < longest_character)
      tried += '\x80';
    if (utf8_sequence_length(tried) > begun.size()) return true;
  }
  return false;
}

} // namespace

std::string whole_characters::push(std::string_view bytes) {
  std::string all = std::exchange(kept_, {});
  all += bytes;
  // Only the last three bytes can belong to an incomplete character.
  for (std::size_t n = std::min(all.size(), longest_character - 1); n > 0; --n) {
    const auto tail = std::string_view(all).substr(all.size() - n);
    if (utf8_sequence_length(tail) != 0 || !may_become_character(tail)) continue;
    kept_ = tail;
    all.resize(all.size() - n);
    break;
  }
  return all;
}

std::string whole_characters::flush() {
  return std::exchange(kept_, {});
}

} // namespace twill::net
