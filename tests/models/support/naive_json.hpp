// A plain JSON reader that uses no library. Before it reads a text, it checks the text by the
// grammar of RFC 8259, with one function for each rule. Tests use it to find out what a damaged
// text means.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "config/base/value.hpp"
#include "tests/support/json.hpp"

namespace twill::test {

/// Whether all bytes are well-formed UTF-8: shortest encodings only, no surrogates, at most
/// U+10FFFF.
inline bool is_naive_utf8(std::string_view s) {
  for (std::size_t at = 0; at < s.size();) {
    const auto byte = [&](std::size_t i) -> unsigned {
      return at + i < s.size() ? static_cast<unsigned char>(s[at + i]) : 0U;
    };
    const unsigned b = byte(0);
    const std::size_t n = b < 0x80 ? 1 : b < 0xC0 ? 0 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
    if (n == 0 || b >= 0xF8) return false;
    std::uint32_t code = n == 1 ? b : b & (0xFFU >> (n + 1));
    for (std::size_t i = 1; i < n; ++i) {
      if ((byte(i) & 0xC0) != 0x80) return false;
      code = code << 6 | (byte(i) & 0x3F);
    }
    constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < least[n] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return false;
    at += n;
  }
  return true;
}

class json_grammar {
public:
  explicit json_grammar(std::string_view text) : text_(text) {}

  bool is_document() {
    return is_naive_utf8(text_) && is_value(0) && (space(), at_ == text_.size());
  }

private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) { return at_ < text_.size() && text_[at_] == c && (++at_, true); }
  bool take_digits() {
    const std::size_t begin = at_;
    while (peek() >= '0' && peek() <= '9')
      ++at_;
    return at_ > begin;
  }
  bool take_word(std::string_view word) {
    return text_.substr(at_, word.size()) == word && (at_ += word.size(), true);
  }
  void space() {
    while (take(' ') || take('\n') || take('\t') || take('\r')) {
    }
  }

  bool is_value(int depth) {
    space();
    if (depth > 100) return false;
    if (take('{')) return is_row('}', [&] { return is_member(depth); });
    if (take('[')) return is_row(']', [&] { return is_value(depth + 1); });
    if (peek() == '"') return is_string();
    return take_word("true") || take_word("false") || take_word("null") || is_number();
  }

  template <class Item>
  bool is_row(char end, Item&& item) {
    space();
    if (take(end)) return true;
    do {
      if (!item()) return false;
      space();
    } while (take(','));
    return take(end);
  }

  bool is_member(int depth) {
    space();
    if (!is_string()) return false;
    space();
    return take(':') && is_value(depth + 1);
  }

  bool is_number() {
    const std::size_t begin = at_;
    take('-');
    if (!take('0') && !take_digits()) return false;
    const std::size_t whole = at_;
    if (take('.') && !take_digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!take_digits()) return false;
    }
    if (at_ == whole) return true;
    return std::isfinite(
        std::strtod(std::string(text_.substr(begin, at_ - begin)).c_str(), nullptr));
  }

  /// The four hex digits of an escape.
  std::optional<unsigned> hex4() {
    unsigned code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const std::size_t digit = std::string_view("0123456789abcdefABCDEF").find(peek());
      if (digit == std::string_view::npos) return std::nullopt;
      code = code << 4 | static_cast<unsigned>(digit < 16 ? digit : digit - 6);
    }
    return code;
  }

  bool is_escape() {
    if (!take('u')) return std::string_view("\"\\/bfnrt").find(peek()) != npos && (++at_, true);
    const auto code = hex4();
    if (!code || (*code >= 0xDC00 && *code < 0xE000)) return false;
    if (*code < 0xD800 || *code > 0xDFFF) return true;
    const auto low = take('\\') && take('u') ? hex4() : std::nullopt;
    return low && *low >= 0xDC00 && *low < 0xE000;
  }

  bool is_string() {
    if (!take('"')) return false;
    while (at_ < text_.size()) {
      if (take('"')) return true;
      if (take('\\')) {
        if (at_ >= text_.size() || !is_escape()) return false;
      } else if (static_cast<unsigned char>(text_[at_++]) < 0x20) {
        return false;
      }
    }
    return false;
  }

  static constexpr std::size_t npos = std::string_view::npos;
  std::string_view text_;
  std::size_t at_ = 0;
};

/// Of equal keys the last value is kept, at the place of the first.
inline value without_repeats(const value& v) {
  if (const auto* list = v.as_list()) {
    value_list out;
    for (const value& one : *list)
      out.push_back(without_repeats(one));
    return value(std::move(out));
  }
  if (v.as_object() == nullptr) return v;
  value_object out;
  for (const auto& [key, member] : *v.as_object()) {
    value* known = nullptr;
    for (auto& [k, m] : out)
      if (k == key) known = &m;
    if (known != nullptr)
      *known = without_repeats(member);
    else
      out.emplace_back(key, without_repeats(member));
  }
  return value(std::move(out));
}

/// The value that a text stands for; nothing if the text is no JSON.
inline std::optional<value> naive_json(std::string_view text) {
  if (!json_grammar(text).is_document()) return std::nullopt;
  return without_repeats(parse_json(text));
}

} // namespace twill::test
