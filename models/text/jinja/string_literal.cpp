#include "models/text/jinja/string_literal.hpp"

#include <cstddef>

#include "models/text/jinja/text.hpp"

namespace twill::models::jinja {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Reads `n` hexadecimal digits at `i` and moves `i` past them.
std::optional<char32_t> read_hex(std::string_view s, std::size_t& i, std::size_t n) {
  if (i + n > s.size()) return std::nullopt;
  char32_t c = 0;
  for (const std::size_t end = i + n; i < end; ++i) {
    const int digit = hex_digit(s[i]);
    if (digit < 0) return std::nullopt;
    c = c * 16 + static_cast<char32_t>(digit);
  }
  if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return std::nullopt;
  return c;
}

char32_t read_octal(std::string_view s, std::size_t& i) {
  char32_t c = 0;
  for (int n = 0; n < 3 && i < s.size() && s[i] >= '0' && s[i] <= '7'; ++n, ++i)
    c = c * 8 + static_cast<char32_t>(s[i] - '0');
  return c;
}

} // namespace

std::optional<std::string> decode_string_literal(std::string_view inside) {
  static constexpr std::string_view letters = "abfnrtv\\'\"";
  static constexpr std::string_view meanings = "\a\b\f\n\r\t\v\\'\"";
  std::string out;
  for (std::size_t i = 0; i < inside.size();) {
    if (inside[i] != '\\' || i + 1 == inside.size()) {
      out.push_back(inside[i++]);
      continue;
    }
    const char e = inside[++i];
    const std::size_t n = e == 'x' ? 2 : e == 'u' ? 4 : e == 'U' ? 8 : 0;
    if (n > 0) {
      const auto c = read_hex(inside, ++i, n);
      if (!c) return std::nullopt;
      append_character(out, *c);
    } else if (e == 'N') {
      return std::nullopt; // \N{name} would need the table of character names
    } else if (e >= '0' && e <= '7') {
      append_character(out, read_octal(inside, i));
    } else if (const std::size_t known = letters.find(e); known != std::string_view::npos) {
      out.push_back(meanings[known]);
      ++i;
    } else {
      if (e != '\n')
        (out += '\\') += e; // an escaped line end is dropped; unknown escapes stay as they are
      ++i;
    }
  }
  return out;
}

} // namespace twill::models::jinja
