// json_text: how JSON spells values: grammar expressions for strings, numbers and fixed values.
//
// One instance adds its shared rules (any value, any string, white space) to one `rules` once.
// Strings: a character may stand as itself, as its short escape or, where a string is otherwise
// free, as \uXXXX. What is left out (\uXXXX inside a pattern or a counted string) is a spelling,
// never a string.
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

  /// White space stands in place: as a rule of its own it could end anywhere, and every token that
  /// begins with a space would have to be judged at each mask.
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
  /// A string of the automaton's language, with its quotes.
  expression string_in(const automaton& language, const std::string& hint);
  /// A string that is an expression as a whole, ^ and $ included, which counts characters: as one
  /// automaton of XGrammar's. Nothing where regex_text.hpp has none.
  std::optional<expression> string_counting(const regex_node& node);
  /// A string in which an expression is found that `search_automaton` has no room for: its counts
  /// stay counts. Nothing where ^, $ or lookahead stand elsewhere than at the ends.
  std::optional<expression> string_matching(const regex_node& node) const;
  /// The automaton's language as it is, without quotes: numbers.
  expression plain_in(const automaton& language, const std::string& hint);
  /// Exactly this value, with free white space between its parts.
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
  int free_escape_; ///< an escape sequence of what no property name holds, and the rest of the
                    ///< string
};

} // namespace twill::models::grammar
