#include "models/text/grammar/schema/object_lowering.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "models/text/grammar/schema/lowering.hpp"

namespace twill::models::grammar {
namespace {

/// Properties whose order is free: 2^n rules.
constexpr std::size_t max_any_order = 4;
/// Properties for which a second order is worth its rules.
constexpr std::size_t max_two_orders = 24;
constexpr std::size_t max_classes = 64;
/// Rules that a bound on the number of optional members may cost.
constexpr std::size_t max_free_rules = 512;

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
  if (named_.size() > max_any_order && !counts_min_ && !counts_max_) free_optional();
  collect_orders();
  const auto ws = outer_.text_.space();
  std::vector<expression> ways;
  const state start;
  if (may_end(start)) ways.push_back(end());
  for (std::size_t order = 0; order < orders_.size() && (!counts_max_ || r.max > 0); ++order) {
    state first;
    first.order = order;
    ways.push_back(next_member(first));
  }
  if (as_arguments_) return sequence_of({ws, choice_of(std::move(ways))});
  return sequence_of({text_of("{"), ws, choice_of(std::move(ways))});
}

/// Whether the schema says what the properties are, so that there need be no others.
bool object_lowering::declares() const {
  if (rules_.min > static_cast<std::int64_t>(named_.size())) return false;
  return std::any_of(rules_.parts.begin(), rules_.parts.end(), [](const auto& part) {
    return part.properties != nullptr || part.by_pattern != nullptr;
  });
}

/// Larger objects do not keep track of their optional properties: they may stand anywhere.
void object_lowering::free_optional() {
  const bool closed = others_.empty();
  for (const auto& property : named_)
    if (!property.required) others_.push_back(property.member);
  const auto n_free = others_.size();
  std::erase_if(named_, [](const named& property) { return !property.required; });
  if (others_.empty()) return;
  const auto n_orders =
      named_.size() <= max_any_order ? std::size_t{1} << named_.size() : 2 * (named_.size() + 1);
  if (closed && n_free * n_orders <= max_free_rules) most_free_ = static_cast<std::int64_t>(n_free);
  auto any = outer_.rules_->add("other", choice_of(std::move(others_)));
  others_ = {outer_.rules_->reference(any)};
}

void object_lowering::collect_orders() {
  std::vector<std::size_t> listed(named_.size());
  std::iota(listed.begin(), listed.end(), std::size_t{0});
  orders_.push_back(listed);
  any_order_ = named_.size() <= max_any_order;
  if (any_order_ || named_.size() > max_two_orders) return;
  std::vector<std::size_t> required_first;
  for (const auto& part : rules_.parts)
    for (const auto& name : part.required)
      for (std::size_t i = 0; i < named_.size(); ++i)
        if (named_[i].name == name &&
            std::find(required_first.begin(), required_first.end(), i) == required_first.end())
          required_first.push_back(i);
  for (const auto i : listed)
    if (std::find(required_first.begin(), required_first.end(), i) == required_first.end())
      required_first.push_back(i);
  if (required_first != listed) orders_.push_back(std::move(required_first));
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

/// False: a required property can have no value.
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

/// The names of properties that have no fixed name, split by what their values must satisfy.
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
    others_.push_back(member_of(outer_.text_.string_in(language, "key"), n));
  }
}

bool object_lowering::may_end(const state& s) const {
  if (counts_min_ && s.counted < rules_.min) return false;
  const auto& order = orders_[s.order];
  for (std::size_t k = 0; k < order.size(); ++k)
    if (named_[order[k]].required && (any_order_ ? (s.seen >> k & 1) == 0 : k >= s.seen))
      return false;
  return true;
}

object_lowering::state object_lowering::after_named(const state& s, std::size_t i) const {
  state next = s;
  next.seen = any_order_ ? s.seen | std::uint64_t{1} << i : i + 1;
  if (counts_min_) next.counted = std::min(s.counted + 1, rules_.min);
  if (counts_max_) ++next.written;
  return next;
}

object_lowering::state object_lowering::after_other(const state& s) const {
  state next = s;
  // Other names may stand twice and be one property, so that they count once.
  if (counts_min_ && !s.has_other) {
    next.counted = std::min(s.counted + 1, rules_.min);
    next.has_other = true;
  }
  if (counts_max_) ++next.written;
  if (most_free_ >= 0) ++next.free;
  return next;
}

/// In order: the next known property is number `from` or, past optional ones, a later one.
expression object_lowering::next_named(const state& s, std::size_t from) {
  if (from >= named_.size()) return never();
  const auto [it, is_new] = chains_.emplace(std::pair{s, from}, -1);
  if (is_new) {
    const int rule = it->second = outer_.rules_->add("property");
    std::vector<expression> ways;
    const auto& next = named_[orders_[s.order][from]];
    ways.push_back(sequence_of({next.member, tail(after_named(s, from))}));
    if (!next.required) ways.push_back(next_named(s, from + 1));
    outer_.rules_->define(rule, choice_of(std::move(ways)));
    return outer_.rules_->reference(rule);
  }
  return outer_.rules_->reference(it->second);
}

expression object_lowering::next_member(const state& s) {
  const auto [it, is_new] = members_.emplace(s, -1);
  if (!is_new) return outer_.rules_->reference(it->second);
  const int rule = it->second = outer_.rules_->add("member");
  std::vector<expression> ways;
  if (any_order_) {
    for (std::size_t i = 0; i < named_.size(); ++i)
      if ((s.seen >> i & 1) == 0)
        ways.push_back(sequence_of({named_[i].member, tail(after_named(s, i))}));
  } else {
    ways.push_back(next_named(s, s.seen));
  }
  if (most_free_ < 0 || s.free < most_free_)
    for (const auto& other : others_)
      ways.push_back(sequence_of({other, tail(after_other(s))}));
  outer_.rules_->define(rule, choice_of(std::move(ways)));
  return outer_.rules_->reference(rule);
}

/// What follows a member: the end, or a comma and another member.
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
