// rules: a context-free grammar as it is built, and its text in XGrammar's EBNF.
//
// Alternatives that no text can complete are dropped before printing, so that a mask never leads
// into a dead end. A value type of one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/text/grammar/schema/code_points.hpp"

namespace twill::models::grammar {

enum class expression_kind { text, chars, sequence, choice, repeat, rule, regex, never };

struct expression {
  expression_kind kind =
      expression_kind::sequence; ///< by default the empty sequence: the empty text
  std::string text;  ///< kind::text: UTF-8; kind::regex: an expression in XGrammar's syntax
  code_points chars; ///< kind::chars
  std::vector<expression> parts;
  int min = 0;  ///< repeat
  int max = -1; ///< repeat; -1: no bound
  int rule = -1;
};

expression text_of(std::string text);
expression one_of(code_points set);
expression one_of(std::string_view ascii);
expression sequence_of(std::vector<expression> parts);
expression choice_of(std::vector<expression> parts);
expression repeat_of(expression part, int min, int max);
expression never();
/// A regular expression that becomes one automaton: what counts up to some hundreds is cheap in it.
expression regex_of(std::string pattern);
/// A class of such an expression.
std::string regex_class(const code_points& set);

class rules {
public:
  /// A new rule without a body; `hint` shows in its name.
  int add(const std::string& hint);
  int add(const std::string& hint, expression body);
  void define(int rule, expression body);
  /// What always follows the rule, as far as it helps to judge tokens that go beyond the rule's end
  /// while compiling rather than at each mask.
  void followed_by(int rule, expression next);
  expression reference(int rule) const;

  /// The grammar from `root` on, whose rule is called "root"; nothing when no text satisfies it.
  std::optional<std::string> ebnf(int root) const;
  std::size_t size() const { return rules_.size(); }

private:
  struct rule {
    std::string name;
    expression body;
    std::optional<expression> next;
  };
  std::vector<rule> rules_;
};

} // namespace twill::models::grammar
