#include "models/text/jinja/lexer.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "models/text/jinja/runtime.hpp"
#include "models/text/jinja/string_literal.hpp"

namespace twill::models::jinja {
namespace {

constexpr std::size_t npos = std::string_view::npos;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<std::uint8_t>(c) >= 0x80;
}

/// Replaces every line end by \n, and removes a line end at the very end.
std::string normalize(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out.push_back(source[i]);
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class lexer {
public:
  explicit lexer(std::string_view source) : s_(source) {}

  std::vector<token> run() {
    while (at_ < s_.size())
      next_tag();
    push(token_kind::end, {});
    return std::move(tokens_);
  }

private:
  [[noreturn]] void fail(std::string message) const {
    throw template_error{line_, std::move(message)};
  }

  void push(token_kind kind, std::string text) {
    tokens_.push_back({kind, std::move(text), line_});
  }

  bool at(std::string_view what) const { return s_.substr(at_, what.size()) == what; }

  void advance(std::size_t to) {
    to = std::min(to, s_.size());
    line_ += static_cast<int>(std::count(s_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         s_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    at_ = to;
  }

  std::size_t skip_space(std::size_t i) const {
    for (std::size_t n = 1; i < s_.size(); i += n)
      if (!is_space(character_at(s_, i, n))) break;
    return std::min(i, s_.size());
  }

  /// Returns the position of the first {{, {% or {# at or after `from`.
  std::size_t find_tag(std::size_t from) const {
    for (;; ++from) {
      from = s_.find('{', from);
      if (from == npos || from + 1 >= s_.size()) return npos;
      const char c = s_[from + 1];
      if (c == '{' || c == '%' || c == '#') return from;
    }
  }

  /// Returns what is kept of `data`, the text before a tag. `sign` is the character after the tag's
  /// opening `{{`, `{%` or `{#`: `-` removes all white space before the tag, and `+` keeps it. With
  /// any other character, only the indentation of a line that begins with `{%` or `{#` is removed,
  /// as Jinja does with lstrip_blocks.
  std::string_view strip_before(std::string_view data, char sign, bool is_variable) const {
    if (sign == '-') {
      while (!data.empty()) {
        std::size_t last = data.size() - 1, n = 1;
        while (last > 0 && (static_cast<std::uint8_t>(data[last]) & 0xC0) == 0x80)
          --last;
        if (!is_space(character_at(data, last, n))) break;
        data = data.substr(0, last);
      }
      return data;
    }
    if (sign == '+' || is_variable) return data;
    const std::size_t newline = data.rfind('\n');
    const std::size_t start = newline == npos ? 0 : newline + 1;
    if (start == 0 && !line_starting_) return data;
    for (std::size_t i = start, n = 1; i < data.size(); i += n)
      if (!is_space(character_at(data, i, n))) return data;
    return data.substr(0, start);
  }

  void emit_data(std::size_t end, char sign, bool is_variable) {
    const std::string_view kept = strip_before(s_.substr(at_, end - at_), sign, is_variable);
    if (!kept.empty()) push(token_kind::data, std::string(kept));
    advance(end);
  }

  void next_tag() {
    const std::size_t tag = find_tag(at_);
    if (tag == npos) {
      push(token_kind::data, std::string(s_.substr(at_)));
      advance(s_.size());
      return;
    }
    const char kind = s_[tag + 1];
    const char sign = tag + 2 < s_.size() ? s_[tag + 2] : '\0';
    emit_data(tag, sign, kind == '{');
    const std::size_t inside = tag + 2 + (sign == '-' || sign == '+' ? 1 : 0);
    if (kind == '#') return skip_comment(tag + 2);
    if (kind == '%' && take_raw(inside)) return;
    push(kind == '{' ? token_kind::variable_begin : token_kind::block_begin, {});
    advance(inside);
    read_expression(kind == '{');
  }

  void skip_comment(std::size_t from) {
    const std::size_t close = s_.find("#}", from);
    if (close == npos) fail("missing end of comment tag");
    const char sign = close > from ? s_[close - 1] : '\0';
    advance(close + 2);
    after_tag(sign, true);
  }

  /// Skips white space after a closing tag, and records whether the next text begins a line.
  void after_tag(char sign, bool trims) {
    const std::size_t from = at_;
    if (sign == '-')
      advance(skip_space(at_));
    else if (sign != '+' && trims && at_ < s_.size() && s_[at_] == '\n')
      advance(at_ + 1);
    line_starting_ = at_ > from && s_[at_ - 1] == '\n';
  }

  /// Reads {% raw %}: everything up to {% endraw %} is literal text.
  bool take_raw(std::size_t inside) {
    std::size_t i = skip_space(inside);
    if (s_.substr(i, 3) != "raw") return false;
    i = skip_space(i + 3);
    const bool minus = i < s_.size() && s_[i] == '-';
    if (s_.substr(i + (minus ? 1 : 0), 2) != "%}") return false;
    advance(i + (minus ? 3 : 2));
    after_tag(minus ? '-' : '+', false);
    for (std::size_t open = s_.find("{%", at_); open != npos; open = s_.find("{%", open + 2)) {
      const char sign = open + 2 < s_.size() ? s_[open + 2] : '\0';
      i = skip_space(open + 2 + (sign == '-' || sign == '+' ? 1 : 0));
      if (s_.substr(i, 6) != "endraw") continue;
      i = skip_space(i + 6);
      const char close = i < s_.size() ? s_[i] : '\0';
      const bool signed_close = close == '-' || close == '+';
      if (s_.substr(i + (signed_close ? 1 : 0), 2) != "%}") continue;
      emit_data(open, sign, false);
      advance(i + (signed_close ? 3 : 2));
      after_tag(signed_close ? close : '\0', true);
      return true;
    }
    fail("missing end of raw directive");
  }

  void read_expression(bool is_variable) {
    const std::string_view close = is_variable ? "}}" : "%}";
    std::string brackets; // open brackets; a closing tag counts only outside of brackets
    for (;;) {
      advance(skip_space(at_));
      if (at_ >= s_.size()) fail("unexpected end of template inside a tag");
      if (brackets.empty()) {
        const char c = s_[at_];
        const bool has_sign = c == '-' || (c == '+' && !is_variable);
        if (s_.substr(at_ + (has_sign ? 1 : 0), 2) == close) {
          push(is_variable ? token_kind::variable_end : token_kind::block_end, {});
          advance(at_ + (has_sign ? 3 : 2));
          after_tag(has_sign ? c : '\0', !is_variable);
          return;
        }
      }
      read_token(brackets);
    }
  }

  void read_token(std::string& brackets) {
    const char c = s_[at_];
    if (c == '"' || c == '\'') return read_string(c);
    if (is_digit(c)) return read_number();
    if (is_name_char(c)) {
      std::size_t end = at_;
      while (end < s_.size() && is_name_char(s_[end]))
        ++end;
      push(token_kind::name, std::string(s_.substr(at_, end - at_)));
      return advance(end);
    }
    static constexpr std::array<std::string_view, 27> operators = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]",
        "(",  ")",  "{",  "}",  ">",  "<",  "=", ".", ":", "|", ",", ";", "!"};
    for (const std::string_view op : operators) {
      if (!at(op)) continue;
      track_bracket(brackets, op.front());
      push(token_kind::op, std::string(op));
      return advance(at_ + op.size());
    }
    fail(std::string("unexpected character '") + c + "'");
  }

  void track_bracket(std::string& brackets, char c) const {
    if (c == '(' || c == '[' || c == '{') {
      brackets.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
      if (brackets.empty() || brackets.back() != c) fail(std::string("unexpected '") + c + "'");
      brackets.pop_back();
    }
  }

  void read_string(char quote) {
    std::size_t end = at_ + 1;
    while (end < s_.size() && s_[end] != quote)
      end += s_[end] == '\\' ? 2 : 1;
    if (end >= s_.size()) fail("a string has no end");
    const std::string_view inside = s_.substr(at_ + 1, end - at_ - 1);
    auto decoded = decode_string_literal(inside);
    if (!decoded) fail("a string has a malformed escape");
    push(token_kind::string, std::move(*decoded));
    advance(end + 1);
  }

  std::size_t skip_digits(std::size_t i) const {
    while (i < s_.size() &&
           (is_digit(s_[i]) || (s_[i] == '_' && i + 1 < s_.size() && is_digit(s_[i + 1]))))
      ++i;
    return i;
  }

  bool digit_at(std::size_t i) const { return i < s_.size() && is_digit(s_[i]); }

  void read_number() {
    std::size_t end = skip_digits(at_);
    bool floating = false;
    const bool after_dot = !tokens_.empty() && tokens_.back().is_op(".");
    if (!after_dot && end < s_.size() && s_[end] == '.' && digit_at(end + 1)) {
      end = skip_digits(end + 1);
      floating = true;
    }
    if (!after_dot && end < s_.size() && (s_[end] == 'e' || s_[end] == 'E')) {
      const std::size_t sign = end + 1 < s_.size() && (s_[end + 1] == '+' || s_[end + 1] == '-');
      if (digit_at(end + 1 + sign)) end = skip_digits(end + 1 + sign), floating = true;
    }
    std::string digits(s_.substr(at_, end - at_));
    digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
    push(floating ? token_kind::floating : token_kind::integer, std::move(digits));
    advance(end);
  }

  std::string_view s_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<token> tokens_;
};

} // namespace

std::vector<token> tokenize(std::string_view source) {
  const std::string text = normalize(source);
  return lexer(text).run();
}

} // namespace twill::models::jinja
