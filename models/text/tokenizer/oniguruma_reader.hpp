// oniguruma_reader: parses the characters, properties and classes of Oniguruma's expressions.
//
// Private to oniguruma*.cpp. The first error ends the parsing: from then on each function returns
// false, and `fault_` says what is wrong with the expression.
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
  /// Sets the fault that twill knows no PCRE2 expression for `what`; returns false.
  bool refuse(const std::string& what);
  bool check_size(std::size_t n_bytes);
  bool descend(); ///< enters a group or a class; fails if the nesting is too deep
  void ascend() { --depth_; }

  bool next_is(std::string_view text) const { return in_.substr(at_).starts_with(text); }
  bool take(std::string_view text);

  /// Reads `\p{name}`, `\P{name}` or either with `^` before the name.
  bool read_property(bool in_class, character_set& out);
  /// Reads an escape that stands for one character. A letter that has no meaning as an escape in
  /// Ruby's syntax, as in `\pL`, stands for itself.
  bool read_character(char32_t& out);
  /// Reads a class after its `[`. The items of a class are united; `&&` intersects everything
  /// before it with everything after it; a leading `^` negates the whole class.
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
