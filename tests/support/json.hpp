// A small JSON reader for tests: golden files become twill::value trees.
//
// Numbers without fraction or exponent keep their digits, others become double. Malformed input
// throws std::runtime_error with the byte offset, so a broken golden file fails its test loudly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "config/base/value.hpp"

namespace twill::test {

class json_reader {
public:
  explicit json_reader(std::string_view text) : text_(text) {}

  value read_document() {
    value result = read_value();
    skip_space();
    if (at_ != text_.size()) fail("text after the value");
    return result;
  }

private:
  [[noreturn]] void fail(const char* reason) const {
    throw std::runtime_error("JSON, byte " + std::to_string(at_) + ": " + reason);
  }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }

  char next() {
    if (at_ >= text_.size()) fail("ends early");
    return text_[at_++];
  }

  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!take(c)) fail("another character expected");
  }

  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  value read_value() {
    skip_space();
    if (at_ >= text_.size()) fail("ends early");
    const char c = text_[at_];
    if (c == '{') return read_object();
    if (c == '[') return read_list();
    if (c == '"') return value(read_string());
    if (take_word("true")) return value(true);
    if (take_word("false")) return value(false);
    if (take_word("null")) return value(nullptr);
    return read_number();
  }

  value read_object() {
    value_object object;
    expect('{');
    if (take('}')) return value(std::move(object));
    do {
      skip_space();
      std::string key = read_string();
      expect(':');
      object.emplace_back(std::move(key), read_value());
    } while (take(','));
    expect('}');
    return value(std::move(object));
  }

  value read_list() {
    value_list list;
    expect('[');
    if (take(']')) return value(std::move(list));
    do
      list.push_back(read_value());
    while (take(','));
    expect(']');
    return value(std::move(list));
  }

  value read_number() {
    const std::size_t begin = at_;
    bool whole = true;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '.' || c == 'e' || c == 'E')
        whole = false;
      else if (c != '-' && c != '+' && (c < '0' || c > '9'))
        break;
      ++at_;
    }
    if (begin == at_) fail("a value expected");
    const std::string digits(text_.substr(begin, at_ - begin));
    if (whole) return value::whole_number(digits);
    return value(std::strtod(digits.c_str(), nullptr));
  }

  std::uint32_t read_hex4() {
    std::uint32_t code = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = next();
      code *= 16;
      if (c >= '0' && c <= '9')
        code += static_cast<std::uint32_t>(c - '0');
      else if (c >= 'a' && c <= 'f')
        code += static_cast<std::uint32_t>(c - 'a' + 10);
      else if (c >= 'A' && c <= 'F')
        code += static_cast<std::uint32_t>(c - 'A' + 10);
      else
        fail("a hex digit expected");
    }
    return code;
  }

  static void append_utf8(std::string& out, std::uint32_t c) {
    const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xC0 | (c >> 6)), put(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
      put(0xE0 | (c >> 12)), put(0x80 | ((c >> 6) & 0x3F)), put(0x80 | (c & 0x3F));
    } else {
      put(0xF0 | (c >> 18)), put(0x80 | ((c >> 12) & 0x3F));
      put(0x80 | ((c >> 6) & 0x3F)), put(0x80 | (c & 0x3F));
    }
  }

  void read_unicode_escape(std::string& out) {
    std::uint32_t code = read_hex4();
    if (code >= 0xD800 && code < 0xDC00 && take_word("\\u")) {
      const std::uint32_t low = read_hex4();
      if (low < 0xDC00 || low > 0xDFFF) fail("a low surrogate expected");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(out, code);
  }

  std::string read_string() {
    if (next() != '"') fail("a string expected");
    std::string out;
    for (;;) {
      const char c = next();
      if (c == '"') return out;
      if (c != '\\') {
        out.push_back(c);
        continue;
      }
      switch (const char e = next()) {
      case 'n':
        out.push_back('\n');
        break;
      case 't':
        out.push_back('\t');
        break;
      case 'r':
        out.push_back('\r');
        break;
      case 'b':
        out.push_back('\b');
        break;
      case 'f':
        out.push_back('\f');
        break;
      case 'u':
        read_unicode_escape(out);
        break;
      case '"':
      case '\\':
      case '/':
        out.push_back(e);
        break;
      default:
        fail("unknown escape");
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

inline value parse_json(std::string_view text) {
  return json_reader(text).read_document();
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline value read_json_file(const std::string& path) {
  return parse_json(read_file(path));
}

/// The member `key` of an object; throws when it is absent.
inline const value& at(const value& object, std::string_view key) {
  const value* member = object.find(key);
  if (member == nullptr) throw std::runtime_error("no member " + std::string(key));
  return *member;
}

inline const std::string& text_of(const value& v) {
  if (v.as_string() == nullptr) throw std::runtime_error("not a string");
  return *v.as_string();
}

inline const value_list& list_of(const value& v) {
  if (v.as_list() == nullptr) throw std::runtime_error("not a list");
  return *v.as_list();
}

/// An integer or a double, as a double.
inline double number_of(const value& v) {
  if (v.as_int() != nullptr) return static_cast<double>(*v.as_int());
  if (v.as_double() != nullptr) return *v.as_double();
  throw std::runtime_error("not a number");
}

} // namespace twill::test
