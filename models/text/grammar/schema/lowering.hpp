// lowering: turns a JSON Schema into grammar rules. A node is a set of schemas that one value must
// satisfy; each node becomes one rule, made from the cases into which cases.hpp expands the node.
//
// An instance serves one schema, on one thread. Throws the exception refusal.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "models/text/grammar/schema/cases.hpp"
#include "models/text/grammar/schema/json_text.hpp"
#include "models/text/grammar/schema/rules.hpp"
#include "models/text/grammar/schema/schema_grammar.hpp"

namespace twill::models::grammar {

class lowering {
public:
  lowering(cases& known, rules& into, const schema_options& options)
      : cases_(&known), rules_(&into), text_(into, options.as_arguments ? ",}]:)" : ",}]:"),
        options_(options) {}

  /// The number of the node's rule. Also adds all rules that this rule uses.
  int rule_of_whole(const node& n);
  /// Like rule_of_whole(), but the rule accepts only objects. It is used for the arguments of a
  /// tool, which must be an object.
  int rule_of_object(const node& n);
  /// Like rule_of_object(), but the object is written as a function's arguments (key=value, ...).
  int rule_of_arguments(const node& n);

private:
  friend class object_lowering;

  void lower_waiting();
  expression value_of(const node& n); ///< a reference to the node's rule
  expression case_of(const schema_case& c);
  expression number_of(const number_rules& rules);
  expression string_of(const string_rules& rules);
  automaton language_of(const string_rules& rules);
  automaton names_language(const node& n);
  expression array_of(const array_rules& rules);
  expression array_with_wanted(const array_rules& rules);
  expression unique_array_of(const array_rules& rules);
  expression listed_array_of(const array_rules& rules, const std::vector<value>& values);
  expression list_rest(const expression& item, std::int64_t min, std::int64_t max);

  cases* cases_;
  rules* rules_;
  json_text text_;
  schema_options options_;
  std::map<node, int> node_rules_;
  std::map<std::string, int> string_rules_; ///< one rule for all strings with equal string_rules
  std::deque<node> todo_;
};

} // namespace twill::models::grammar
