#include "models/text/tokenizer/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "config/base/assert.hpp"

namespace twill::models {
namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

int combining_class(utf8proc_int32_t c) {
  return utf8proc_get_property(c)->combining_class;
}

/// Sorts each run of combining marks by combining class and keeps the order of marks of one class,
/// as Unicode's canonical ordering requires. utf8proc's own sort takes quadratic time for a long
/// run.
void order_marks(std::vector<utf8proc_int32_t>& characters) {
  const auto is_starter = [](utf8proc_int32_t c) { return combining_class(c) == 0; };
  auto at = characters.begin();
  while (at != characters.end()) {
    const auto first = std::find_if_not(at, characters.end(), is_starter);
    const auto last = std::find_if(first, characters.end(), is_starter);
    std::stable_sort(first, last, [](utf8proc_int32_t a, utf8proc_int32_t b) {
      return combining_class(a) < combining_class(b);
    });
    at = last;
  }
}

/// True if the first bytes of the characters show that the text is in the normal form `form`
/// already. No character below U+0300 composes or changes places with another one (NFC). No
/// character below U+00C0 has a canonical decomposition (NFD), and none below U+00A0 has any
/// decomposition (NFKC, NFKD).
bool is_normal_already(std::string_view text, normal_form form) {
  const unsigned lead_limit = form == normal_form::nfc   ? 0xCC
                              : form == normal_form::nfd ? 0xC3
                                                         : 0x80;
  return std::all_of(text.begin(), text.end(), [lead_limit](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0xC0 ? byte < 0x80 || lead_limit > 0x80 : byte < lead_limit;
  });
}

} // namespace

char32_t next_character(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const std::size_t length = character_length(text[at]);
  char32_t c = byte(0);
  if (length > 1) {
    c &= 0x7Fu >> length;
    for (std::size_t i = 1; i < length; ++i)
      c = c << 6 | (byte(i) & 0x3Fu);
  }
  at += length;
  return c;
}

std::size_t previous_character(std::string_view text, std::size_t end) {
  do
    --end;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  return end;
}

void append_utf8(std::string& out, char32_t c) {
  std::array<utf8proc_uint8_t, 4> bytes;
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes.data());
  out.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(n));
}

bool is_white_space(char32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_word(char32_t c) {
  const auto kind = category(c);
  return (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_ND) ||
         kind == UTF8PROC_CATEGORY_PC;
}

bool is_mark(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_MN && kind <= UTF8PROC_CATEGORY_ME;
}

std::string normalize(std::string_view text, normal_form form) {
  if (is_normal_already(text, form)) return std::string(text);
  const bool compatible = form == normal_form::nfkc || form == normal_form::nfkd;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                                      (compatible ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> characters;
  characters.reserve(text.size() / 2 + 1);
  std::array<utf8proc_int32_t, 32> parts; // the longest decomposition has 18 characters
  for (std::size_t at = 0; at < text.size();) {
    const auto c = static_cast<utf8proc_int32_t>(next_character(text, at));
    const auto n = utf8proc_decompose_char(c, parts.data(), parts.size(), options, nullptr);
    TWILL_ASSERT(n >= 0 && n <= static_cast<utf8proc_ssize_t>(parts.size()),
                 "a character of valid text decomposes");
    characters.insert(characters.end(), parts.begin(), parts.begin() + n);
  }
  order_marks(characters);
  auto count = static_cast<utf8proc_ssize_t>(characters.size());
  if (form == normal_form::nfc || form == normal_form::nfkc)
    count = utf8proc_normalize_utf32(
        characters.data(), count,
        static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (utf8proc_ssize_t i = 0; i < count; ++i)
    append_utf8(out, static_cast<char32_t>(characters[static_cast<std::size_t>(i)]));
  return out;
}

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_character(text, at);
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    if (c == 0x130) append_utf8(out, 0x307); // the only character whose lower case is two
  }
  return out;
}

} // namespace twill::models
