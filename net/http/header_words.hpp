// header_words: comparison and trimming of header values. Letters are ASCII, whatever the locale.
// The functions are pure.
#pragma once

#include <algorithm>
#include <string_view>

namespace twill::net {

/// True if two words are equal, ignoring the case of ASCII letters.
inline bool is_same_word(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

/// Returns `text` without leading and trailing spaces and tabs.
inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

} // namespace twill::net
