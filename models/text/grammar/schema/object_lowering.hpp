// object_lowering: turns what a JSON Schema requires of one object into grammar rules, which say
// which members may follow which.
//
// The grammar rules keep track of the properties that the schema names, so no named property is
// written twice. If an object has few named properties, they may come in any order. Larger objects
// treat required and optional properties as two groups, whose members may be mixed. Very large
// objects, and objects with minProperties or maxProperties, have one group for all properties. The
// properties of a small group come in any order, those of a larger group in the order of
// `properties`. In a larger group of up to 24 properties, the required ones may instead come first,
// in the order of `required`.
//
// Properties that the schema does not name may be written anywhere. A context-free grammar cannot
// ensure that none of them is written twice; the matcher ensures this (unique_keys.hpp). Use an
// instance for one object only.
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
  /// With `as_arguments` the object is written as `key=value, ...)` instead of `"key": value,
  /// ...}`. Properties whose names are not identifiers, and properties without fixed names, are
  /// then left out.
  object_lowering(lowering& outer, const object_rules& rules, bool as_arguments = false)
      : outer_(outer), rules_(rules), as_arguments_(as_arguments) {}

  expression whole();

private:
  struct named {
    std::string name;
    bool required = false;
    expression member; ///< key, colon, value
  };
  /// A group of named properties, with the orders in which they may be written.
  struct group {
    std::vector<std::vector<std::size_t>> orders; ///< each order lists the group's properties as
                                                  ///< indices in named_
    bool any_order = false;
    const std::vector<std::size_t>& order(std::size_t which) const {
      return orders[which < orders.size() ? which : 0];
    }
    std::size_t n_states() const; ///< number of values that the group's `state::seen` can take
  };
  /// Which members of the object have been written already.
  struct state {
    /// One number for each group of properties. If the group may come in any order, bit i tells
    /// whether its property i is written. Otherwise the number counts the properties, from the
    /// beginning of the order, that have been written or left out.
    std::array<std::uint64_t, 2> seen{};
    std::size_t order = 0;    ///< index of the order that the groups use
    std::int64_t counted = 0; ///< members counted for minProperties, up to that number
    std::int64_t written = 0; ///< members counted for maxProperties, up to that number
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
  std::vector<group> groups_; ///< one or two groups, which together have all of named_
  std::size_t n_orders_ = 1;
  std::vector<std::string> excluded_; ///< names that other properties (those without fixed names)
                                      ///< must not have
  std::vector<expression> others_;
  bool counts_min_ = false, counts_max_ = false;
  std::map<state, int> tails_, members_;
  std::map<std::pair<state, std::size_t>, int> chains_;
};

} // namespace twill::models::grammar
