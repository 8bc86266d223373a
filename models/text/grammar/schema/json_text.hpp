// json_text: grammar expressions for the JSON spellings of strings, numbers and fixed values.
//
// The constructor adds rules that many schemas need (any value, any string, any object, ...) to the
// grammar, a `rules` object (rules.hpp). A character of a string may be written as itself, as a
// short escape such as \n, or as \uXXXX. Where a pattern or a maximum length restricts a string,
// most escapes of the form \uXXXX are not allowed. Their characters can be written in another way,
// except for control characters without a short escape, which then cannot be written.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "config/base/value.hpp"
#include "models/text/grammar/schema/automaton.hpp"
#include "models/text/grammar/schema/regex_syntax.hpp"
#include "models/text/grammar/schema/rules.hpp"

namespace twill::models::grammar {

class json_text {
public:
  /// `after_value`: what may follow a value, white space aside.
  explicit json_text(rules& into, std::string_view after_value = ",}]:");

  /// White space. The expression is put directly into the rules that use it. A separate rule for it
  /// could end at any character, and the matcher would have to check every token that begins with a
  /// space for each mask.
  expression space() const { return repeat_of(one_of(" \n\r\t"), 0, -1); }
  expression any() const { return into_->reference(any_); }
  expression any_string() const { return into_->reference(string_); }
  expression any_object() const { return into_->reference(object_); }
  expression any_array() const { return into_->reference(array_); }
  expression number() const { return into_->reference(number_); }
  expression integer() const { return into_->reference(integer_); }

  /// A string of `min` to `max` code points; max -1: no bound.
  expression string_of_length(std::int64_t min, std::int64_t max);
  /// A string of `min` to `max` code points out of `set`; max -1: no bound.
  expression string_of_class(const code_points& set, std::int64_t min, std::int64_t max);
  /// A string that the automaton accepts, with its quotes.
  expression string_in(const automaton& language, const std::string& hint);
  /// Returns the grammar of a string that matches `node`, a regular expression that begins with ^,
  /// ends with $ and has large repetition counts. XGrammar compiles this grammar to one automaton.
  /// Returns none if `node` has another form or if counting_regex() (regex_text.hpp) returns none.
  std::optional<expression> string_counting(const regex_node& node);
  /// Returns the grammar of a string in which a regular expression matches anywhere. It is used for
  /// expressions that are too large for search_automaton(): their repetition counts are written as
  /// counts and not expanded to states. Returns none if ^, $ or a lookahead is used elsewhere than
  /// at the ends.
  std::optional<expression> string_matching(const regex_node& node) const;
  /// A text that the automaton accepts, without quotes and escapes; used for numbers.
  expression plain_in(const automaton& language, const std::string& hint);
  /// Exactly the value `v`, with any white space between its parts.
  expression fixed(const value& v) const;

private:
  expression char_in(const code_points& set) const;
  static std::string unit_of(const code_points& set, bool escapes);
  expression after_string() const;
  std::optional<expression> pattern_part(const regex_node& node) const;
  expression emit(const automaton& language, const std::string& hint, bool quoted);

  rules* into_;
  std::string after_value_;
  int any_, string_, string_rest_, object_, array_, number_, integer_;
  int escape_; ///< any escape sequence
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, int>
      counted_;     ///< by unit and bounds
  int free_escape_; ///< an escape sequence for a character that is outside ASCII or has a short
                    ///< escape, and the rest of the string
};

} // namespace twill::models::grammar
