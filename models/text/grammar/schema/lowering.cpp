#include "models/text/grammar/schema/lowering.hpp"

#include <algorithm>
#include <utility>

#include "models/text/grammar/schema/boolean_operations.hpp"
#include "models/text/grammar/schema/object_lowering.hpp"

namespace twill::models::grammar {
namespace {

/// The largest number of states of an automaton that combines a pattern with a length. A maxLength
/// that would take more states is lowered.
constexpr std::int64_t max_counted_states = 1200;
/// If the items of an array with uniqueItems can have at most this many different values, they may
/// come in any order. For n values this takes 2^n rules. With more values, up to max_listed_values,
/// only one order is allowed.
constexpr std::size_t max_unique_values = 6;
constexpr std::size_t max_listed_values = 64;
constexpr std::int64_t max_items = 1'000'000;

/// A language of the form [set]{least,most}. A `most` of -1 means no bound.
struct counted_class {
  code_points set;
  std::int64_t least = 0, most = -1;
};
std::optional<counted_class> as_counted_class(const automaton& a) {
  counted_class out;
  bool may_end = false;
  for (int at = 0;;) {
    const auto& s = a.states[static_cast<std::size_t>(at)];
    if (may_end && !s.accepts) return std::nullopt;
    may_end = s.accepts;
    if (s.edges.empty() && at > 0 && may_end) {
      out.most = at;
      return out;
    }
    if (s.edges.size() != 1) return std::nullopt;
    const auto& [set, target] = s.edges[0];
    if (at == 0) out.set = set;
    if (!(set == out.set)) return std::nullopt;
    if (target == at) return may_end ? std::optional(out) : std::nullopt;
    if (target != at + 1) return std::nullopt;
    at = target;
    out.least += may_end ? 0 : 1;
  }
}

int to_int(std::int64_t n) {
  return static_cast<int>(std::min(n, max_items));
}

std::string hint_of(const node& n, const document& doc) {
  if (n.empty()) return "any";
  const auto pointer = doc.pointer_to(*n.front().schema);
  return pointer.substr(pointer.rfind('/') + 1);
}

} // namespace

int lowering::rule_of_whole(const node& n) {
  value_of(n);
  lower_waiting();
  return node_rules_.at(n);
}

int lowering::rule_of_arguments(const node& n) {
  std::vector<expression> parts;
  const auto alternatives = cases_->of(n);
  for (const auto& c : alternatives)
    if (!c.values && (c.types & type_object) != 0)
      parts.push_back(object_lowering(*this, c.object, true).whole());
  const int rule = rules_->add("arguments", choice_of(std::move(parts)));
  lower_waiting();
  return rule;
}

int lowering::rule_of_object(const node& n) {
  std::vector<expression> parts;
  auto alternatives = cases_->of(n);
  for (auto& c : alternatives) {
    only(c, type_object);
    if (c.values)
      std::erase_if(*c.values, [](const value* v) { return v->as_object() == nullptr; });
    parts.push_back(case_of(c));
  }
  const int rule = rules_->add("object", choice_of(std::move(parts)));
  lower_waiting();
  return rule;
}

void lowering::lower_waiting() {
  while (!todo_.empty()) {
    const node next = std::move(todo_.front());
    todo_.pop_front();
    std::vector<expression> parts;
    // The cases are copied, because lowering one of them expands other nodes.
    const auto alternatives = cases_->of(next);
    for (const auto& c : alternatives)
      parts.push_back(case_of(c));
    rules_->define(node_rules_.at(next), choice_of(std::move(parts)));
  }
}

expression lowering::value_of(const node& n) {
  if (n.empty()) {
    node_rules_.emplace(n, rules_->add("value", text_.any()));
    return text_.any();
  }
  const auto found = node_rules_.find(n);
  if (found != node_rules_.end()) return rules_->reference(found->second);
  const int rule = rules_->add(hint_of(n, cases_->doc()));
  node_rules_.emplace(n, rule);
  todo_.push_back(n);
  return rules_->reference(rule);
}

expression lowering::case_of(const schema_case& c) {
  std::vector<expression> parts;
  if (c.values) {
    for (const auto* v : *c.values)
      parts.push_back(text_.fixed(*v));
    return choice_of(std::move(parts));
  }
  for (const auto* excluded : c.not_lists)
    if ((c.types & (excluded->as_list() ? type_array : type_object)) != 0)
      refuse(errc::unsupported,
             "`enum` or `const` at " + cases_->doc().pointer_to(*excluded) +
                 " is not enforced where a list or an object must not be equal to it");
  if ((c.types & type_object) != 0) parts.push_back(object_lowering(*this, c.object).whole());
  if ((c.types & type_array) != 0) parts.push_back(array_of(c.array));
  if ((c.types & type_string) != 0) parts.push_back(string_of(c.string));
  if ((c.types & type_number) != 0) parts.push_back(number_of(c.number));
  if ((c.types & type_true) != 0) parts.push_back(text_of("true"));
  if ((c.types & type_false) != 0) parts.push_back(text_of("false"));
  if ((c.types & type_null) != 0) parts.push_back(text_of("null"));
  return choice_of(std::move(parts));
}

expression lowering::number_of(const number_rules& rules) {
  if (rules.trivial()) return rules.whole ? text_.integer() : text_.number();
  return text_.plain_in(number_automaton(rules), "number");
}

automaton lowering::language_of(const string_rules& rules) {
  automaton all = length_automaton(0, -1);
  for (const auto& pattern : rules.patterns)
    all = intersection(all, cases_->known_patterns().of(pattern));
  for (const auto& pattern : rules.not_patterns)
    all = intersection(all, complement(cases_->known_patterns().of(pattern)));
  if (!rules.not_values.empty()) {
    const std::vector<std::string> texts(rules.not_values.begin(), rules.not_values.end());
    all = intersection(all, complement(literal_automaton(texts)));
  }
  if (all.empty() || (rules.min == 0 && rules.max < 0)) return all;
  const auto bounds = all.length_bounds();
  const bool short_ones = bounds.least < rules.min;
  const bool long_ones = rules.max >= 0 && (!bounds.greatest || *bounds.greatest > rules.max);
  if (!short_ones && !long_ones) return all;
  auto max = rules.max;
  if (long_ones) {
    const auto room = max_counted_states / static_cast<std::int64_t>(all.states.size());
    max = std::min(max, std::max({room, rules.min, bounds.least}));
  }
  return intersection(all, length_automaton(rules.min, long_ones ? max : -1));
}

expression lowering::string_of(const string_rules& rules) {
  if (rules.patterns.empty() && rules.not_patterns.empty() && rules.not_values.empty())
    return text_.string_of_length(rules.min, rules.max);
  std::string key = std::to_string(rules.min) + "," + std::to_string(rules.max);
  for (const auto* list : {&rules.patterns, &rules.not_patterns, &rules.not_values}) {
    key += '\x01';
    for (const auto& text : *list)
      key += text + '\x02';
  }
  if (const auto found = string_rules_.find(key); found != string_rules_.end())
    return rules_->reference(found->second);
  const int rule = rules_->add("string");
  string_rules_.emplace(key, rule);
  const bool plain =
      rules.patterns.size() == 1 && rules.not_patterns.empty() && rules.not_values.empty();
  if (plain && rules.min == 0 && rules.max < 0)
    if (auto counting = text_.string_counting(parse_regex(*rules.patterns.begin()))) {
      rules_->define(rule, std::move(*counting));
      return rules_->reference(rule);
    }
  try {
    if (plain && (rules.min > 0 || rules.max >= 0)) {
      const auto& language = cases_->known_patterns().of(*rules.patterns.begin());
      if (const auto counted = language.empty() ? std::nullopt : as_counted_class(language)) {
        auto most = rules.max;
        if (counted->most >= 0) at_most(most, counted->most);
        rules_->define(
            rule, text_.string_of_class(counted->set, std::max(rules.min, counted->least), most));
        return rules_->reference(rule);
      }
    }
    rules_->define(rule, text_.string_in(language_of(rules), "string"));
  } catch (const refusal& r) {
    // A pattern whose repetition counts are too large for an automaton is written as a grammar rule
    // with these counts. That is possible only if no other pattern and no length must hold.
    if (r.why.code != errc::too_large || !plain || rules.min > 0 || rules.max >= 0) throw;
    auto written = text_.string_matching(parse_regex(*rules.patterns.begin()));
    if (!written) throw;
    rules_->define(rule, std::move(*written));
  }
  return rules_->reference(rule);
}

automaton lowering::names_language(const node& n) {
  automaton out;
  const auto alternatives = cases_->of(n);
  for (const auto& c : alternatives) {
    if (c.values) {
      std::vector<std::string> texts;
      for (const auto* v : *c.values)
        if (const auto* s = v->as_string()) texts.push_back(*s);
      out = united(out, literal_automaton(texts));
    } else if ((c.types & type_string) != 0) {
      out = united(out, language_of(c.string));
    }
  }
  return out;
}

/// Returns the grammar of what follows the first item of an array: `min` to `max` further items
/// (-1: no bound), and the closing bracket.
expression lowering::list_rest(const expression& item, std::int64_t min, std::int64_t max) {
  if (min > max_items) refuse(errc::too_large, "`minItems` beyond 1000000 is not enforced");
  const auto ws = text_.space();
  return sequence_of({repeat_of(sequence_of({ws, text_of(","), ws, item}), to_int(min),
                                max < 0 ? -1 : to_int(max)),
                      ws, text_of("]")});
}

expression lowering::array_of(const array_rules& rules) {
  if (rules.unique != nullptr && (rules.max < 0 || rules.max > 1)) return unique_array_of(rules);
  if (!rules.contains.empty()) return array_with_wanted(rules);
  std::int64_t n_apart = 0; // number of items that have a node of their own
  for (const auto& part : rules.parts)
    n_apart = std::max(n_apart, static_cast<std::int64_t>(part.prefix.size()));
  if (!rules.items.empty()) n_apart = std::max(n_apart, rules.items.rbegin()->first + 1);
  if (n_apart == 0 && rules.parts.empty() && rules.min == 0 && rules.max < 0)
    return text_.any_array();
  const auto ws = text_.space();
  const auto& min = rules.min;
  auto max = rules.max;
  const auto rest_node = cases::item_node(rules, n_apart);
  if (cases_->is_empty(rest_node)) max = max < 0 ? n_apart : std::min(max, n_apart);
  if (max >= 0 && min > max) return never();

  // `tail` is the grammar of what may follow the first n items. At first, n is n_apart, the number
  // of items that have schemas of their own, as with prefixItems. Each pass of the loop below then
  // extends `tail` by one item at its front, and n falls by one.
  const auto item = value_of(rest_node);
  expression tail;
  if (n_apart == 0) {
    if (max == 0) return sequence_of({text_of("["), ws, text_of("]")});
    auto filled = sequence_of(
        {item, list_rest(item, std::max<std::int64_t>(min - 1, 0), max < 0 ? -1 : max - 1)});
    return sequence_of(
        {text_of("["), ws,
         min == 0 ? choice_of({text_of("]"), std::move(filled)}) : std::move(filled)});
  }
  const auto left = [&](std::int64_t n) {
    return max < 0 ? -1 : std::max<std::int64_t>(max - n, 0);
  };
  tail = list_rest(item, std::max<std::int64_t>(min - n_apart, 0), left(n_apart));
  for (auto n = n_apart; n-- > 0;) {
    const bool may_end = n >= min, may_go_on = max < 0 || n < max;
    std::vector<expression> ways;
    if (n == 0) {
      if (may_end) ways.push_back(text_of("]"));
      if (may_go_on)
        ways.push_back(sequence_of({value_of(cases::item_node(rules, 0)), std::move(tail)}));
      return sequence_of({text_of("["), ws, choice_of(std::move(ways))});
    }
    if (may_end) ways.push_back(text_of("]"));
    if (may_go_on)
      ways.push_back(
          sequence_of({text_of(","), ws, value_of(cases::item_node(rules, n)), std::move(tail)}));
    tail = rules_->reference(rules_->add("items", sequence_of({ws, choice_of(std::move(ways))})));
  }
  return tail;
}

/// An array with `contains`: any items, with the wanted ones among them.
expression lowering::array_with_wanted(const array_rules& rules) {
  const auto& wanted = rules.contains.front();
  const auto where = cases_->doc().pointer_to(*wanted.item.schema);
  bool prefix = !rules.items.empty();
  for (const auto& part : rules.parts)
    prefix = prefix || !part.prefix.empty();
  if (rules.contains.size() > 1 || prefix || rules.max >= 0 || rules.min > wanted.count ||
      wanted.count > 16)
    refuse(errc::unsupported,
           "`contains` at " + where +
               " is not enforced together with another `contains`, a prefix of items or "
               "bounds on their number");
  const auto ws = text_.space();
  const auto any_node = cases::item_node(rules, 0);
  const auto item = value_of(any_node);
  auto both = any_node;
  both.push_back(wanted.item);
  const auto found = value_of(node_of(std::move(both)));
  const auto comma = sequence_of({ws, text_of(","), ws});
  const auto others = repeat_of(sequence_of({item, comma}), 0, -1);
  std::vector<expression> parts{text_of("["), ws};
  for (std::int64_t i = 0; i < wanted.count; ++i) {
    if (i > 0) parts.push_back(comma);
    parts.push_back(others);
    parts.push_back(found);
  }
  parts.push_back(list_rest(item, 0, -1));
  return sequence_of(std::move(parts));
}

/// Returns the grammar of an array with `uniqueItems`. The keyword is enforced if the items can
/// only be certain fixed values: a few values may come in every order, more values only in the
/// order of the schema.
expression lowering::unique_array_of(const array_rules& rules) {
  const auto item = cases::item_node(rules, 0);
  std::vector<value> values;
  bool finite = !item.empty() && rules.contains.empty() && rules.items.empty();
  for (const auto& part : rules.parts)
    finite = finite && part.prefix.empty();
  if (finite) {
    for (const auto& c : cases_->of(item)) {
      if (c.values) {
        for (const auto* v : *c.values)
          if (std::none_of(values.begin(), values.end(),
                           [v](const value& w) { return json_equal(*v, w); }))
            values.push_back(*v);
        continue;
      }
      finite = finite && (c.types & ~unsigned{type_true | type_false | type_null}) == 0;
      if ((c.types & type_true) != 0) values.push_back(value(true));
      if ((c.types & type_false) != 0) values.push_back(value(false));
      if ((c.types & type_null) != 0) values.push_back(value(nullptr));
    }
  }
  if (!finite || values.size() > max_listed_values) {
    if (!options_.repeated_items)
      refuse_keyword(errc::unsupported, cases_->doc(), *rules.unique, "uniqueItems",
                     "is enforced only for arrays of at most one item, or of at most " +
                         std::to_string(max_listed_values) +
                         " different fixed values (`structured.repeated_items` = true takes it "
                         "without)");
    auto repeated = rules;
    repeated.unique = nullptr;
    return array_of(repeated);
  }
  if (values.size() > max_unique_values) return listed_array_of(rules, values);
  const auto n = values.size();
  const auto ws = text_.space();
  const auto is_full = [&](int count) { return rules.max >= 0 && count >= rules.max; };
  std::vector<int> after(std::size_t{1} << n); // rules by the set of values written so far
  for (auto& rule : after)
    rule = rules_->add("unique");
  const auto items_from = [&](std::size_t used) {
    std::vector<expression> ways;
    for (std::size_t i = 0; i < n; ++i)
      if ((used >> i & 1) == 0)
        ways.push_back(sequence_of(
            {text_.fixed(values[i]), rules_->reference(after[used | std::size_t{1} << i])}));
    return choice_of(std::move(ways));
  };
  for (std::size_t used = 1; used < after.size(); ++used) {
    const int count = __builtin_popcountll(used);
    std::vector<expression> ways;
    if (count >= rules.min) ways.push_back(text_of("]"));
    if (!is_full(count)) ways.push_back(sequence_of({text_of(","), ws, items_from(used)}));
    rules_->define(after[used], sequence_of({ws, choice_of(std::move(ways))}));
  }
  std::vector<expression> ways;
  if (rules.min == 0) ways.push_back(text_of("]"));
  if (!is_full(0)) ways.push_back(items_from(0));
  return sequence_of({text_of("["), ws, choice_of(std::move(ways))});
}

/// Returns the grammar of an array with `uniqueItems` whose items can only be the given fixed
/// values. It accepts any subset of the values, in the order of the schema. Such an array stands
/// for a set, so the order does not change its meaning.
expression lowering::listed_array_of(const array_rules& rules, const std::vector<value>& values) {
  const auto n = values.size();
  const auto count = [](std::int64_t items) { return static_cast<std::size_t>(items); };
  if (rules.min > static_cast<std::int64_t>(n)) return never();
  const auto most = rules.max < 0 ? n : std::min(n, count(rules.max));
  // Items are counted only as far as a bound needs the count.
  const auto counted = most < n ? most : count(rules.min);
  const auto ws = text_.space();
  // item[i][k] is the grammar of the rest of the array, from the next item on, when the array has k
  // items and the next one must be values[i] or a later value. rest[i][k] is the grammar of what
  // may follow the k items: the end of the array, or a comma and then item[i][k].
  std::vector<std::vector<expression>> item(n + 1), rest(n + 1);
  for (std::size_t i = n + 1; i-- > 0;)
    for (std::size_t k = 0; k <= counted; ++k) {
      item[i].push_back(never());
      if (i < n && k < most) {
        auto first = sequence_of({text_.fixed(values[i]), rest[i + 1][std::min(k + 1, counted)]});
        item[i][k] =
            rules_->reference(rules_->add("listed", choice_of({std::move(first), item[i + 1][k]})));
      }
      std::vector<expression> ways;
      if (k >= count(rules.min)) ways.push_back(text_of("]"));
      ways.push_back(sequence_of({text_of(","), ws, item[i][k]}));
      rest[i].push_back(
          rules_->reference(rules_->add("unique", sequence_of({ws, choice_of(std::move(ways))}))));
    }
  std::vector<expression> ways;
  if (rules.min == 0) ways.push_back(text_of("]"));
  ways.push_back(item[0][0]);
  return sequence_of({text_of("["), ws, choice_of(std::move(ways))});
}

std::string grammar_of_schema(std::string_view schema_text, const schema_options& options) {
  const document doc(schema_text);
  patterns known;
  cases all(doc, known);
  rules into;
  lowering lower(all, into, options);
  const int root = lower.rule_of_whole(node_of({{&doc.root(), true}}));
  auto text = into.ebnf(root);
  if (!text) refuse(errc::unsatisfiable, "no value satisfies the schema");
  return std::move(*text);
}

std::string grammar_of_frames(const config::grammar_spec& spec, bool repeated_items) {
  if (spec.frames.empty()) refuse(errc::bad_grammar, "a framed answer needs at least one frame");
  rules into;
  std::vector<expression> ways;
  for (const auto& frame : spec.frames) {
    const document doc(frame.schema);
    patterns known;
    cases all(doc, known);
    // A frame (config::framed_schema) is a schema with the fixed texts before and after its value.
    // If the text before is empty, the value is a plain answer, which may be of any type. Otherwise
    // the frame is a tool call, and its value is the arguments. A function takes no arguments that
    // its schema does not declare.
    const bool is_answer = frame.before.empty();
    lowering lower(all, into,
                   {!is_answer || spec.closed_objects, spec.as_arguments, repeated_items});
    const auto root = node_of({{&doc.root(), true}});
    const int body = is_answer           ? lower.rule_of_whole(root)
                     : spec.as_arguments ? lower.rule_of_arguments(root)
                                         : lower.rule_of_object(root);
    if (!is_answer && !into.ebnf(body))
      refuse(errc::unsatisfiable,
             "no object satisfies the schema of a tool's `parameters`, and a tool's arguments are "
             "always an object: " +
                 frame.schema.substr(0, 200));
    ways.push_back(
        sequence_of({text_of(frame.before), into.reference(body), text_of(frame.after)}));
  }
  const auto one = into.reference(into.add("frame", choice_of(std::move(ways))));
  std::vector<expression> parts{text_of(spec.list_begin), one};
  if (spec.repeated)
    parts.push_back(repeat_of(sequence_of({text_of(spec.list_between), one}), 0, -1));
  parts.push_back(text_of(spec.list_end));
  auto text = into.ebnf(into.add("frames", sequence_of(std::move(parts))));
  if (!text) refuse(errc::unsatisfiable, "no value satisfies the schemas");
  return std::move(*text);
}

std::string grammar_of_any_object() {
  rules into;
  const json_text text(into);
  return *into.ebnf(into.add("object", text.any_object()));
}

} // namespace twill::models::grammar
