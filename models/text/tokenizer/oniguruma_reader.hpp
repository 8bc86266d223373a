// oniguruma_reader: reads the characters, properties and classes of Oniguruma's expressions.
//
// Private to oniguruma*.cpp. The first fault ends the reading: each function returns false then,
// and fault() says what the expression must or must not do.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "models/text/tokenizer/oniguruma_sets.hpp"

namespace twill::models::oniguruma {

bool is_digit(char c, int base = 10);

class reader {
protected:
  explicit reader(std::string_view expression) : in_(expression) {}

  bool wrong(const std::string& what);
  /// The fault that twill knows no expression of PCRE2 for `what`.
  bool refuse(const std::string& what);
  bool check_size(std::size_t n_bytes);
  bool descend(); ///< into a group or a class; limits how deep they nest
  void ascend() { --depth_; }

  bool next_is(std::string_view text) const { return in_.substr(at_).starts_with(text); }
  bool take(std::string_view text);

  /// Reads `\p{name}`, `\P{name}` or either with `^` before the name.
  bool read_property(bool in_class, character_set& out);
  /// Reads an escape that stands for one character. Of letters that Ruby's syntax gives no meaning,
  /// as in `\pL`, it is the letter itself.
  bool read_character(char32_t& out);
  /// Reads a class behind its `[`. Sets are united until `&&`, which intersects all before it with
  /// all behind it; `^` negates the whole.
  bool read_class(bool ignore_case, character_set& out);

  std::string_view in_;
  std::size_t at_ = 0;
  std::string fault_;

private:
  bool read_number(int base, int least, int most, char32_t& out);
  bool is_ascii(char32_t c);
  bool read_item(bool ignore_case, character_set& out);
  bool read_range(bool ignore_case, character_set& out);
  bool read_class_character(char32_t& out);

  int depth_ = 0;
};

} // namespace twill::models::oniguruma
