// cases: expands a conjunction of schemas into a union of simple cases. Each case has rules for
// every JSON type.
//
// A node is a set of literals; a literal is a schema that must hold, or one that must not hold.
// Expanding a node resolves $ref and the combining keywords (allOf, anyOf, oneOf, not,
// if/then/else, dependent*) by case distinction. Property values and items are not expanded but
// become nodes of their own, so that recursive schemas have finitely many nodes. For oneOf, the
// case of a branch excludes the other branches unless these are provably disjoint from it.
//
// One thread at a time. Throws the exception refusal, which names the keyword and its JSON pointer,
// for a schema that cannot be enforced.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/text/grammar/schema/decimal.hpp"
#include "models/text/grammar/schema/document.hpp"
#include "models/text/grammar/schema/keywords.hpp"
#include "models/text/grammar/schema/patterns.hpp"
#include "models/text/grammar/schema/validator.hpp"

namespace twill::models::grammar {

struct literal {
  const value* schema = nullptr;
  bool holds = true; ///< false: the schema must not hold
  auto operator<=>(const literal&) const = default;
};
using node = std::vector<literal>; ///< sorted, without duplicates; empty: any value

enum json_type : unsigned {
  type_null = 1,
  type_true = 2,
  type_false = 4,
  type_number = 8,
  type_string = 16,
  type_array = 32,
  type_object = 64,
  every_type = 127,
};

struct string_rules {
  std::set<std::string> patterns, not_patterns;
  std::set<std::string> not_values;
  std::int64_t min = 0, max = -1;
};

struct array_rules {
  std::int64_t min = 0, max = -1;
  struct part {
    std::vector<literal> prefix;
    std::optional<literal> rest;
  };
  std::vector<part> parts;
  std::map<std::int64_t, node> items; ///< what single items must satisfy beside
  struct wanted {
    literal item;
    std::int64_t count = 1;
  };
  std::vector<wanted> contains;
  const value* unique = nullptr; ///< the schema that has uniqueItems, or null
};

struct object_rules {
  struct part {
    const value* properties = nullptr;
    const value* by_pattern = nullptr;
    const value* others = nullptr;
    std::vector<std::string> required; ///< in the schema's order
    bool annotates = true; ///< false inside `not`: schemas there mark no property as evaluated (for
                           ///< unevaluatedProperties)
  };
  std::vector<part> parts;
  std::set<std::string> required, forbidden;
  std::map<std::string, node> members; ///< what single members must satisfy beside
  std::vector<literal> names;          ///< propertyNames
  std::int64_t min = 0, max = -1;
  bool no_others = false; ///< unevaluatedProperties: false
};

struct schema_case {
  unsigned types = every_type;
  number_rules number;
  string_rules string;
  array_rules array;
  object_rules object;
  std::optional<std::vector<const value*>> values; ///< if set, the value is one of these; each was
                                                   ///< checked against the node
  std::vector<const value*> not_lists; ///< lists and objects that are excluded as values; grammar
                                       ///< rules cannot express this
};

class cases {
public:
  cases(const document& doc, patterns& known) : doc_(&doc), patterns_(&known), check_(doc, known) {}

  /// All cases of the node `n`, a set of schemas that must hold or must not hold: every value that
  /// satisfies them belongs to at least one case. If a case lists its `values`, each listed value
  /// satisfies the node. The reference stays valid as long as this object exists.
  const std::vector<schema_case>& of(const node& n);
  /// True if it is proven that no value satisfies the node.
  bool is_empty(const node& n);

  /// The literals that the value of property `name` must satisfy in a case.
  node member_node(const object_rules& rules, const std::string& name);
  /// Whether `name` may be a property at all.
  bool may_be_named(const object_rules& rules, const std::string& name);
  /// The literals that item `i` of an array must satisfy.
  static node item_node(const array_rules& rules, std::int64_t i);

  validator& check() { return check_; }
  const document& doc() const { return *doc_; }
  patterns& known_patterns() { return *patterns_; }

private:
  struct pending;
  using branch = std::function<void(pending&)>;
  using choice = std::vector<branch>;
  struct pending {
    schema_case so_far;
    struct task {
      literal what;
      int depth = 0; ///< number of nested $ref and combining keywords around the literal
      bool annotates = true;
    };
    std::vector<task> todo;
    std::vector<choice> choices;
  };

  static void suppress_annotations(pending& at, std::size_t n_todo, std::size_t n_choices,
                                   std::size_t n_parts);
  void run(pending at, const node& whole, std::vector<schema_case>& out);
  void apply(pending& at, const value& schema, int depth);
  void apply_not(pending& at, const value& schema, int depth);
  void apply_types(schema_case& c, const value& schema);
  void apply_object(pending& at, const value& schema, int depth);
  void apply_array(schema_case& c, const value& schema);
  void apply_string(schema_case& c, const value& schema);
  void apply_combined(pending& at, const value& schema, int depth);
  void apply_one_of(pending& at, const value& schema, int depth);
  void apply_dependencies(pending& at, const value& schema, int depth);
  void refute_members(choice& branches, const value& schema);
  void refute_items(choice& branches, const value& schema);
  void refute_scalars(choice& branches, const value& schema);
  void refute_values(choice& branches, const value& schema);
  void refute_combined(choice& branches, const value& schema, int depth);
  bool is_empty_case(const schema_case& c);
  bool disjoint(const value& a, const value& b);
  bool is_alone(const node& whole, const value& schema) const;

  const document* doc_;
  patterns* patterns_;
  validator check_;
  std::map<node, std::vector<schema_case>> known_;
  std::map<node, bool> empty_;
  const node* current_ = nullptr;
  int emptiness_depth_ = 0;
};

node node_of(std::vector<literal> literals);

/// Each function makes a rule of a schema stricter. only() restricts the JSON types of a value,
/// at_least() raises a lower bound, and at_most() lowers an upper bound, where -1 means no bound.
inline void only(schema_case& c, unsigned types) {
  c.types &= types;
}
inline void at_least(std::int64_t& min, std::int64_t n) {
  min = std::max(min, n);
}
inline void at_most(std::int64_t& max, std::int64_t n) {
  max = max < 0 ? n : std::min(max, n);
}

} // namespace twill::models::grammar
