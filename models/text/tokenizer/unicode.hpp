// unicode: characters, character classes and normal forms, as tokenizers need them.
//
// Pure functions, which any thread may call. Texts must be well-formed UTF-8 (callers check once).
// For any text the time is linear, except that runs of combining marks are sorted in O(n log n).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace twill::models {

/// The number of bytes of a character whose first byte is `lead`.
constexpr std::size_t character_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// Reads the character at byte `at` and moves `at` to the byte after it.
char32_t next_character(std::string_view text, std::size_t& at);
/// The byte offset of the character that ends at byte `end` (> 0).
std::size_t previous_character(std::string_view text, std::size_t end);
void append_utf8(std::string& out, char32_t c);

bool is_white_space(char32_t c); ///< White_Space
bool is_word(char32_t c);        ///< letters, marks, decimal digits, connector punctuation
bool is_mark(char32_t c);        ///< nonspacing, spacing and enclosing marks

enum class normal_form { nfc, nfd, nfkc, nfkd };
/// The normal form of a text (Unicode Standard Annex 15).
std::string normalize(std::string_view text, normal_form form);
std::string lowercase(std::string_view text);

} // namespace twill::models
