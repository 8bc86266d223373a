// object_lowering: the rules of one object: which members may follow which.
//
// No property that the schema names stands twice: the rules keep track of all of them. Objects of
// few properties accept them in any order. Larger ones accept the required and the optional ones
// each in the order of `properties` (the required ones also in that of `required`) or, where they
// are few, in any order, and the two mixed; very large ones, and those whose properties are
// counted, have one order for all. Other properties may stand anywhere. That none of them stands
// twice is beyond rules without context: matchers see to it (unique_keys.hpp). One use per
// instance.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
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
  /// Properties whose order among themselves is known.
  struct group {
    std::vector<std::vector<std::size_t>> orders; ///< of the group's properties, as indices
    bool any_order = false;
    const std::vector<std::size_t>& order(std::size_t which) const {
      return orders[which < orders.size() ? which : 0];
    }
    std::size_t n_states() const; ///< of `state::seen`
  };
  /// What has been written already.
  struct state {
    /// Of each group. Any order: a bit per property; else how many of the order are past.
    std::array<std::uint64_t, 2> seen{};
    std::size_t order = 0;    ///< which of the groups' orders
    std::int64_t counted = 0; ///< members that count for minProperties, as far as needed
    std::int64_t written = 0; ///< members that count for maxProperties, as far as needed
    bool has_other = false;
    auto operator<=>(const state&) const = default;
  };

  bool declares() const;
  bool collect_named();
  void collect_others();
  void collect_groups();
  void add_order(group& g);
  std::vector<std::pair<automaton, node>> other_classes();
  expression member_of(expression key, const node& n);
  expression argument_of(const std::string& name, const node& n);
  expression end() const { return text_of(as_arguments_ ? ")" : "}"); }
  bool may_end(const state& s) const;
  state after_named(const state& s, std::size_t at, std::size_t i) const;
  state after_other(const state& s) const;
  expression next_named(const state& s, std::size_t at);
  expression next_member(const state& s);
  expression tail(const state& s);

  lowering& outer_;
  const object_rules& rules_;
  const bool as_arguments_;
  std::vector<named> named_;
  std::vector<group> groups_; ///< one or two, of all in named_
  std::size_t n_orders_ = 1;
  std::vector<std::string> excluded_; ///< names that the other properties do not have
  std::vector<expression> others_;
  bool counts_min_ = false, counts_max_ = false;
  std::map<state, int> tails_, members_;
  std::map<std::pair<state, std::size_t>, int> chains_;
};

} // namespace twill::models::grammar
