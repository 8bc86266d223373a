#include "models/text/grammar/schema/object_lowering.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "models/text/grammar/schema/boolean_operations.hpp"
#include "models/text/grammar/schema/lowering.hpp"

namespace twill::models::grammar {
namespace {

/// Most properties whose order is free, which takes 2^n rules.
constexpr std::size_t max_any_order = 8;
/// The same bound for objects whose properties are counted, where each count has rules of its own.
constexpr std::size_t max_any_order_counted = 4;
/// Most sets of properties written so far for which a large object may have rules of their own.
constexpr std::size_t max_sets = 512;
/// If the whole schema has more rules than this, an object gets as few rules as possible.
constexpr std::size_t many_rules = 4000;
/// Most properties for which a second order is worth its rules.
constexpr std::size_t max_two_orders = 24;
constexpr std::size_t max_classes = 64;
/// If patternProperties or propertyNames allow only finitely many names besides those in
/// `properties`, up to this many names are listed one by one in the grammar.
constexpr std::size_t max_listed_names = 64;

bool is_identifier(const std::string& name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_letter(name.front()) && name.size() <= 256 &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

} // namespace

expression object_lowering::whole() {
  const auto& r = rules_;
  if (r.parts.empty() && r.required.empty() && r.forbidden.empty() && r.members.empty() &&
      r.names.empty() && r.min == 0 && r.max < 0 && !r.no_others && !as_arguments_)
    return outer_.text_.any_object();
  if (!collect_named()) return never();
  if (!as_arguments_) collect_others();
  const auto n_required = static_cast<std::int64_t>(r.required.size());
  counts_min_ = r.min > n_required;
  counts_max_ =
      r.max >= 0 && (!others_.empty() || static_cast<std::int64_t>(named_.size()) > r.max);
  if (counts_min_ && r.min > static_cast<std::int64_t>(named_.size()) + (others_.empty() ? 0 : 1)) {
    if (others_.empty()) return never();
    refuse(errc::unsupported,
           "`minProperties` above 1 is not enforced for properties without fixed names: "
           "a name could stand twice");
  }
  collect_groups();
  const auto ws = outer_.text_.space();
  std::vector<expression> ways;
  const state start;
  if (may_end(start)) ways.push_back(end());
  for (std::size_t order = 0; order < n_orders_ && (!counts_max_ || r.max > 0); ++order) {
    state first;
    first.order = order;
    ways.push_back(next_member(first));
  }
  if (as_arguments_) return sequence_of({ws, choice_of(std::move(ways))});
  return sequence_of({text_of("{"), ws, choice_of(std::move(ways))});
}

/// True if the schema declares the properties, so that the object need not have others.
bool object_lowering::declares() const {
  if (rules_.min > static_cast<std::int64_t>(named_.size())) return false;
  return std::any_of(rules_.parts.begin(), rules_.parts.end(), [](const auto& part) {
    return part.properties != nullptr || part.by_pattern != nullptr;
  });
}

std::size_t object_lowering::group::n_states() const {
  const auto n = orders.front().size();
  return any_order ? std::size_t{1} << n : n + 1;
}

/// Splits the properties into groups so that the model has as much freedom of order as possible.
/// Preferably all properties may come in any order. Otherwise the required and the optional
/// properties are two groups, each in any order or in the order of the schema, and members of the
/// two groups may be mixed freely. If even that takes too many rules, all properties come in the
/// order of the schema.
void object_lowering::collect_groups() {
  const bool counts = counts_min_ || counts_max_;
  const bool is_large = outer_.rules_->size() > many_rules;
  const auto n_any = counts || is_large ? max_any_order_counted : max_any_order;
  std::vector<std::size_t> all(named_.size()), required, optional;
  std::iota(all.begin(), all.end(), std::size_t{0});
  for (const auto i : all)
    (named_[i].required ? required : optional).push_back(i);
  if (all.size() <= n_any) {
    groups_ = {{{std::move(all)}, true}};
    return;
  }
  groups_ = {{{required}, false}, {{optional}, false}};
  for (const auto& [any_required, any_optional] :
       {std::pair{true, true}, std::pair{true, false}, std::pair{false, true},
        std::pair{false, false}}) {
    if ((any_required && required.size() > n_any) || (any_optional && optional.size() > n_any))
      continue;
    groups_[0].any_order = any_required;
    groups_[1].any_order = any_optional;
    if (counts || is_large || groups_[0].n_states() * groups_[1].n_states() > max_sets) continue;
    if (!any_required) add_order(groups_[0]);
    return;
  }
  groups_ = {{{std::move(all)}, false}};
  add_order(groups_[0]);
}

/// Adds a second order: first the properties in `required`, in the order of that list.
void object_lowering::add_order(group& g) {
  const auto listed = g.orders.front();
  if (listed.size() > max_two_orders) return;
  std::vector<std::size_t> second;
  const auto add = [&second](std::size_t i) {
    if (std::find(second.begin(), second.end(), i) == second.end()) second.push_back(i);
  };
  for (const auto& part : rules_.parts)
    for (const auto& name : part.required)
      for (const auto i : listed)
        if (named_[i].name == name) add(i);
  for (const auto i : listed)
    add(i);
  if (second == listed) return;
  g.orders.push_back(std::move(second));
  n_orders_ = 2;
}

expression object_lowering::member_of(expression key, const node& n) {
  const auto ws = outer_.text_.space();
  auto all = sequence_of({std::move(key), ws, text_of(":"), ws, outer_.value_of(n)});
  return outer_.rules_->reference(outer_.rules_->add("pair", std::move(all)));
}

expression object_lowering::argument_of(const std::string& name, const node& n) {
  auto all = sequence_of({text_of(name + "="), outer_.value_of(n)});
  return outer_.rules_->reference(outer_.rules_->add("argument", std::move(all)));
}

/// Returns false if a required property can have no value.
bool object_lowering::collect_named() {
  auto& cases = *outer_.cases_;
  std::vector<std::string> names;
  const auto add = [&names](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const auto& part : rules_.parts)
    if (part.properties != nullptr)
      for (const auto& [name, schema] : *part.properties->as_object())
        add(name);
  for (const auto& name : rules_.required)
    add(name);
  for (const auto& [name, schemas] : rules_.members)
    add(name);
  excluded_ = names;
  excluded_.insert(excluded_.end(), rules_.forbidden.begin(), rules_.forbidden.end());
  for (const auto& name : names) {
    const bool required = rules_.required.contains(name);
    const auto n = cases.member_node(rules_, name);
    if (cases.is_empty(n)) {
      if (required) return false;
      continue;
    }
    if (as_arguments_ && !is_identifier(name)) {
      if (!required) continue;
      refuse(errc::unsupported,
             "the required property \"" + name +
                 "\" cannot be written as an argument: its name is no identifier");
    }
    named_.push_back(
        {name, required,
         as_arguments_ ? argument_of(name, n) : member_of(outer_.text_.fixed(value(name)), n)});
  }
  return true;
}

/// Splits the property names that the schema does not list into classes. Names whose values must
/// satisfy the same schemas form one class.
std::vector<std::pair<automaton, node>> object_lowering::other_classes() {
  auto& cases = *outer_.cases_;
  automaton free = complement(literal_automaton(excluded_));
  for (const auto& l : rules_.names) {
    auto language = outer_.names_language(node_of({l}));
    free = intersection(free, language);
  }
  std::vector<std::pair<automaton, std::set<std::string>>> classes{{free, {}}};
  std::set<std::string> all;
  for (const auto& part : rules_.parts)
    if (part.by_pattern != nullptr)
      for (const auto& [pattern, schema] : *part.by_pattern->as_object())
        all.insert(pattern);
  for (const auto& pattern : all) {
    const auto& found = cases.known_patterns().of(pattern);
    const auto other = complement(found);
    std::vector<std::pair<automaton, std::set<std::string>>> split;
    for (auto& [language, matched] : classes) {
      auto with = matched;
      with.insert(pattern);
      if (auto in = intersection(language, found); !in.empty())
        split.push_back({std::move(in), std::move(with)});
      if (auto out = intersection(language, other); !out.empty())
        split.push_back({std::move(out), matched});
    }
    classes = std::move(split);
    if (classes.size() > max_classes)
      refuse(errc::too_large, "`patternProperties` has too many patterns that overlap");
  }
  std::vector<std::pair<automaton, node>> out;
  for (auto& [language, matched] : classes) {
    std::vector<literal> literals;
    bool known = false;
    for (const auto& part : rules_.parts) {
      bool in_part = false;
      if (part.by_pattern != nullptr)
        for (const auto& [pattern, schema] : *part.by_pattern->as_object())
          if (matched.contains(pattern)) {
            in_part = true;
            literals.push_back({&schema, true});
          }
      if (!in_part && part.others != nullptr) {
        in_part = true;
        literals.push_back({part.others, true});
      }
      known |= in_part && part.annotates;
    }
    if (!known && (rules_.no_others || (outer_.options_.closed_objects && declares()))) continue;
    const auto n = node_of(std::move(literals));
    const auto same =
        std::find_if(out.begin(), out.end(), [&n](const auto& c) { return c.second == n; });
    if (same == out.end())
      out.push_back({std::move(language), n});
    else
      same->first = united(same->first, language);
  }
  return out;
}

void object_lowering::collect_others() {
  if (rules_.max >= 0 && rules_.max <= static_cast<std::int64_t>(rules_.required.size())) return;
  for (const auto& [language, n] : other_classes()) {
    if (language.empty() || outer_.cases_->is_empty(n)) continue;
    // A few names are treated like declared properties: each may occur once.
    if (const auto names = words_of(language, max_listed_names)) {
      for (const auto& name : *names)
        named_.push_back({name, false, member_of(outer_.text_.fixed(value(name)), n)});
      continue;
    }
    others_.push_back(member_of(outer_.text_.string_in(language, "key"), n));
  }
}

bool object_lowering::may_end(const state& s) const {
  if (counts_min_ && s.counted < rules_.min) return false;
  for (std::size_t at = 0; at < groups_.size(); ++at) {
    const auto& order = groups_[at].order(s.order);
    const auto seen = s.seen[at];
    for (std::size_t k = 0; k < order.size(); ++k)
      if (named_[order[k]].required && (groups_[at].any_order ? (seen >> k & 1) == 0 : k >= seen))
        return false;
  }
  return true;
}

object_lowering::state object_lowering::after_named(const state& s, std::size_t at,
                                                    std::size_t i) const {
  state next = s;
  next.seen[at] = groups_[at].any_order ? s.seen[at] | std::uint64_t{1} << i : i + 1;
  if (counts_min_) next.counted = std::min(s.counted + 1, rules_.min);
  if (counts_max_) ++next.written;
  return next;
}

object_lowering::state object_lowering::after_other(const state& s) const {
  state next = s;
  // Other names count as one property, because the same name may occur twice.
  if (counts_min_ && !s.has_other) {
    next.counted = std::min(s.counted + 1, rules_.min);
    next.has_other = true;
  }
  if (counts_max_) ++next.written;
  return next;
}

/// Returns the grammar of the next member from the group of properties `at`, whose order is fixed,
/// and of the rest of the object. The member is the first property of the group that has been
/// neither written nor left out, or a later one if all properties between are optional.
expression object_lowering::next_named(const state& s, std::size_t at) {
  const auto& order = groups_[at].order(s.order);
  const auto from = static_cast<std::size_t>(s.seen[at]);
  if (from >= order.size()) return never();
  const auto [it, is_new] = chains_.emplace(std::pair{s, at}, -1);
  if (!is_new) return outer_.rules_->reference(it->second);
  const int rule = it->second = outer_.rules_->add("property");
  std::vector<expression> ways;
  const auto& next = named_[order[from]];
  ways.push_back(sequence_of({next.member, tail(after_named(s, at, from))}));
  if (!next.required) {
    state past = s;
    past.seen[at] = from + 1;
    ways.push_back(next_named(past, at));
  }
  outer_.rules_->define(rule, choice_of(std::move(ways)));
  return outer_.rules_->reference(rule);
}

expression object_lowering::next_member(const state& s) {
  const auto [it, is_new] = members_.emplace(s, -1);
  if (!is_new) return outer_.rules_->reference(it->second);
  const int rule = it->second = outer_.rules_->add("member");
  std::vector<expression> ways;
  for (std::size_t at = 0; at < groups_.size(); ++at) {
    if (!groups_[at].any_order) {
      ways.push_back(next_named(s, at));
      continue;
    }
    const auto& order = groups_[at].order(s.order);
    for (std::size_t i = 0; i < order.size(); ++i)
      if ((s.seen[at] >> i & 1) == 0)
        ways.push_back(sequence_of({named_[order[i]].member, tail(after_named(s, at, i))}));
  }
  for (const auto& other : others_)
    ways.push_back(sequence_of({other, tail(after_other(s))}));
  outer_.rules_->define(rule, choice_of(std::move(ways)));
  return outer_.rules_->reference(rule);
}

/// Returns what follows a member: the end of the object, or a comma and another member.
expression object_lowering::tail(const state& s) {
  const auto [it, is_new] = tails_.emplace(s, -1);
  if (!is_new) return outer_.rules_->reference(it->second);
  const int rule = it->second = outer_.rules_->add("tail");
  const auto ws = outer_.text_.space();
  std::vector<expression> ways;
  if (may_end(s)) ways.push_back(end());
  if (!counts_max_ || s.written < rules_.max)
    ways.push_back(sequence_of({text_of(","), ws, next_member(s)}));
  outer_.rules_->define(rule, sequence_of({ws, choice_of(std::move(ways))}));
  return outer_.rules_->reference(rule);
}

} // namespace twill::models::grammar
