// object_lowering: the rules of one object: which members may follow which.
//
// Objects of few known properties accept each of them once, in any order. Larger ones keep track of
// the required properties alone: up to four in any order, more in the order of `properties` or of
// `required`. Optional and other properties may then stand anywhere; one that stands twice means
// its last value to every reader of JSON, which is valid as well. Unless there are very many, no
// more optional members may stand than there are optional properties, so that the object ends.
// Where properties are counted, all of them are tracked, in order. One use per instance.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "models/text/grammar/schema/cases.hpp"
#include "models/text/grammar/schema/rules.hpp"

namespace twill::models::grammar {

class lowering;

class object_lowering {
public:
  /// `as_arguments`: key=value, ...) instead of "key": value, ...} between braces. A property whose
  /// name is no identifier is left out then, and so are those without fixed names.
  object_lowering(lowering& outer, const object_rules& rules, bool as_arguments = false)
      : outer_(outer), rules_(rules), as_arguments_(as_arguments) {}

  expression whole();

private:
  struct named {
    std::string name;
    bool required = false;
    expression member; ///< key, colon, value
  };
  /// What has been written already.
  struct state {
    std::uint64_t seen = 0; ///< any order: a bit per property; else how many of the order are past
    std::size_t order = 0;  ///< which of orders_
    std::int64_t counted = 0; ///< members that count for minProperties, as far as needed
    std::int64_t written = 0; ///< members that count for maxProperties, as far as needed
    std::int64_t free = 0;    ///< optional members of a larger object, where they are bounded
    bool has_other = false;
    auto operator<=>(const state&) const = default;
  };

  bool declares() const;
  bool collect_named();
  void collect_others();
  void free_optional();
  void collect_orders();
  std::vector<std::pair<automaton, node>> other_classes();
  expression member_of(expression key, const node& n);
  expression argument_of(const std::string& name, const node& n);
  expression end() const { return text_of(as_arguments_ ? ")" : "}"); }
  bool may_end(const state& s) const;
  state after_named(const state& s, std::size_t i) const;
  state after_other(const state& s) const;
  expression next_named(const state& s, std::size_t from);
  expression next_member(const state& s);
  expression tail(const state& s);

  lowering& outer_;
  const object_rules& rules_;
  const bool as_arguments_;
  std::vector<named> named_;
  std::vector<std::vector<std::size_t>> orders_; ///< of the known properties, as indices
  std::vector<std::string> excluded_;            ///< names that the other properties do not have
  std::vector<expression> others_;
  bool any_order_ = false;
  std::int64_t most_free_ = -1; ///< how many optional members may stand; -1: no bound
  bool counts_min_ = false, counts_max_ = false;
  std::map<state, int> tails_, members_;
  std::map<std::pair<state, std::size_t>, int> chains_;
};

} // namespace twill::models::grammar
