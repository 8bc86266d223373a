// text: a string that remembers which of its bytes came from the request (taint).
//
// Immutable once shared. The byte ranges of the taint are ascending, disjoint and never touch, so
// they can be used directly as rendered_prompt::literal, in which the tokenizer recognises no
// control tokens. A text counts in bytes; Python counts the code points of a string, and the
// functions here convert between the two.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace twill::models::jinja {

using spans = std::vector<std::pair<std::size_t, std::size_t>>;

struct text {
  std::string bytes;
  spans taint;

  text() = default;
  explicit text(std::string s, bool tainted = false) : bytes(std::move(s)) {
    if (tainted && !bytes.empty()) taint.emplace_back(0, bytes.size());
  }

  void append(std::string_view s, bool tainted = false);
  void append(const text& other);
  /// Bytes [begin, end) of `other`.
  void append(const text& other, std::size_t begin, std::size_t end);
  bool tainted() const { return !taint.empty(); }
};

using text_ptr = std::shared_ptr<const text>;

text slice_bytes(const text& source, std::size_t begin, std::size_t end);

/// The number of code points of valid UTF-8.
std::size_t count_characters(std::string_view s);
/// The byte offset of each character and of the end. // (count + 1)
std::vector<std::size_t> character_offsets(std::string_view s);
/// The code point at byte `at`; `length` receives its bytes.
char32_t character_at(std::string_view s, std::size_t at, std::size_t& length);
void append_character(std::string& out, char32_t c);

/// Python's str.isspace of one character.
bool is_space(char32_t c);
/// `s` with the simple (one to one) case mapping of every character.
std::string change_case(std::string_view s, bool upper);

} // namespace twill::models::jinja
