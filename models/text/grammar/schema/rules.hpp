// rules: a context-free grammar under construction, which can be printed in XGrammar's EBNF.
//
// Alternatives that no text can complete are removed before printing, so that a mask never allows a
// token after which the answer cannot be completed. A value type; one thread at a time.
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
/// A regular expression that XGrammar compiles to one automaton, in which counts up to some
/// hundreds are cheap.
expression regex_of(std::string pattern);
/// A character class in the syntax of regex_of().
std::string regex_class(const code_points& set);

class rules {
public:
  /// Adds a rule without a body and returns its number. `hint` becomes part of its name.
  int add(const std::string& hint);
  int add(const std::string& hint, expression body);
  void define(int rule, expression body);
  /// Declares text that always follows the rule. Tokens that extend beyond the rule's end can then
  /// be checked once while compiling, and not again for each mask.
  void followed_by(int rule, expression next);
  expression reference(int rule) const;

  /// The grammar with the start rule `root`, which is printed as "root"; none if no text satisfies
  /// the grammar.
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
