#include "models/text/grammar/schema/json_text.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <utility>

#include "models/text/grammar/errc.hpp"
#include "models/text/grammar/schema/decimal.hpp"
#include "models/text/grammar/schema/regex_text.hpp"
#include "models/text/grammar/schema/utf8.hpp"

namespace twill::models::grammar {
namespace {

using node_kind = regex_node_kind;

const code_points surrogates(0xd800, 0xdfff); ///< code points that UTF-8 does not encode
const code_points unescaped = ~code_points({{0, 0x1f}, {'"', '"'}, {'\\', '\\'}}) - surrogates;
const code_points high = code_points(0x80, last_code_point) - surrogates; ///< all outside ASCII

/// A maxLength above this number of code points is lowered to it, because each length takes a state
/// of its own in the automaton. Masks then also refuse longer strings that the schema allows.
constexpr std::int64_t max_counted = 1024;

/// Returns alternatives of a regular expression, each after a `|`, which match one code point that
/// JSON spells as \uXXXX or as a pair of surrogates. ASCII characters are included only if `ascii`
/// is true.
std::string escaped_unit(bool ascii) {
  const std::string hex = "[0-9a-fA-F]", start = "|\\\\u";
  std::string out = start + "[1-9abcefABCEF]" + hex + "{3}" + start + "0[1-9a-fA-F]" + hex + "{2}" +
                    start + "00[89a-fA-F]" + hex + start + "[dD][0-7]" + hex + "{2}";
  if (ascii) out += start + "00[0-7]" + hex;
  return out + start + "[dD][89abAB]" + hex + "{2}\\\\u[dD][c-fC-F]" + hex + "{2}";
}

struct short_escape {
  char letter;
  std::uint32_t stands_for;
};
constexpr short_escape short_escapes[] = {{'"', '"'},  {'\\', '\\'}, {'/', '/'},  {'b', '\b'},
                                          {'f', '\f'}, {'n', '\n'},  {'r', '\r'}, {'t', '\t'}};

expression hex_digits(int n) {
  return repeat_of(one_of("0123456789abcdefABCDEF"), n, n);
}

/// Matches the four hexadecimal digits of a UTF-16 code unit outside ASCII.
expression high_unit() {
  return choice_of({sequence_of({one_of("123456789abcdefABCDEF"), hex_digits(3)}),
                    sequence_of({text_of("0"), one_of("123456789abcdefABCDEF"), hex_digits(2)}),
                    sequence_of({text_of("00"), one_of("89abcdefABCDEF"), hex_digits(1)})});
}

/// Spells `c` as \uXXXX, or as a pair of surrogates, as Python's json.dumps does.
std::string escaped_units(std::uint32_t c) {
  char text[16];
  if (c < 0x10000)
    std::snprintf(text, sizeof text, "\\u%04x", c);
  else
    std::snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                  0xdc00 + ((c - 0x10000) & 0x3ff));
  return text;
}

/// Returns the code points that have a short escape, such as \n.
code_points short_escaped() {
  std::vector<code_point_range> ranges;
  for (const auto& escape : short_escapes)
    ranges.push_back({escape.stands_for, escape.stands_for});
  return code_points(std::move(ranges));
}

} // namespace

json_text::json_text(rules& into, std::string_view after_value)
    : into_(&into), after_value_(after_value) {
  string_rest_ = into.add("rest");
  escape_ = into.add("escape",
                     choice_of({one_of("\"\\/bfnrt"), sequence_of({text_of("u"), hex_digits(4)})}));
  const auto rest = into.reference(string_rest_);
  into.define(string_rest_,
              choice_of({text_of("\""), sequence_of({one_of(unescaped), rest}),
                         sequence_of({text_of("\\"), into.reference(escape_), rest})}));
  into.followed_by(string_rest_, after_string());
  free_escape_ = into.add(
      "escaped",
      sequence_of({text_of("\\"),
                   choice_of({one_of("\"\\/bfnrt"), sequence_of({text_of("u"), high_unit()})}),
                   rest}));
  string_ = into.add("string", sequence_of({text_of("\""), rest}));

  const auto digits = one_of("0123456789");
  const auto minus = repeat_of(text_of("-"), 0, 1);
  const auto whole =
      choice_of({text_of("0"), sequence_of({one_of("123456789"), repeat_of(digits, 0, -1)})});
  integer_ = into.add("integer", sequence_of({minus, whole}));
  number_ = into.add(
      "number", sequence_of({minus, whole,
                             repeat_of(sequence_of({text_of("."), repeat_of(digits, 1, -1)}), 0, 1),
                             repeat_of(sequence_of({one_of("eE"), repeat_of(one_of("+-"), 0, 1),
                                                    repeat_of(digits, 1, -1)}),
                                       0, 1)}));
  any_ = into.add("any");
  const auto ws = space();
  const auto member = sequence_of({any_string(), ws, text_of(":"), ws, any()});
  const auto more = [&](const expression& item) {
    return sequence_of({item, repeat_of(sequence_of({ws, text_of(","), ws, item}), 0, -1), ws});
  };
  object_ =
      into.add("object",
               sequence_of({text_of("{"), ws,
                            choice_of({text_of("}"), sequence_of({more(member), text_of("}")})})}));
  array_ = into.add(
      "array", sequence_of({text_of("["), ws,
                            choice_of({text_of("]"), sequence_of({more(any()), text_of("]")})})}));
  into.define(any_, choice_of({into.reference(object_), into.reference(array_), any_string(),
                               number(), text_of("true"), text_of("false"), text_of("null")}));
}

expression json_text::string_of_length(std::int64_t min, std::int64_t max) {
  return min == 0 && max < 0 ? any_string() : string_of_class(code_points::all(), min, max);
}

expression json_text::string_of_class(const code_points& set, std::int64_t min, std::int64_t max) {
  if (min > max_counted)
    refuse(errc::too_large,
           "`minLength` beyond " + std::to_string(max_counted) + " is not enforced");
  if (max >= 0 && max < min) return never();
  max = std::min(max, max_counted);
  auto unit = unit_of(set, max < 0);
  if (unit.empty()) return min == 0 ? text_of("\"\"") : never();
  const auto [known, is_new] = counted_.emplace(std::tuple{unit, min, max}, -1);
  if (is_new) {
    known->second = into_->add("counted", regex_of(regex_repeat(unit, min, max) + "\""));
    into_->followed_by(known->second, after_string());
  }
  return sequence_of({text_of("\""), into_->reference(known->second)});
}

/// Returns a regular expression for one character of the set as a JSON string spells it; empty if
/// the set has no character that can be spelled. With `escapes`, characters outside ASCII may also
/// be spelled \uXXXX.
std::string json_text::unit_of(const code_points& set, bool escapes) {
  const auto plain = set & unescaped;
  code_points letters;
  for (const auto& escape : short_escapes) {
    const auto letter = static_cast<std::uint32_t>(escape.letter);
    if (set.contains(escape.stands_for)) letters = letters | code_points(letter, letter);
  }
  std::string unit = plain.empty() ? "" : regex_class(plain);
  if (letters.empty()) return unit;
  unit += std::string(unit.empty() ? "" : "|") + "\\\\" + regex_class(letters);
  if (escapes && set.covers(high)) unit += escaped_unit(set == code_points::all());
  return "(" + unit + ")";
}

std::optional<expression> json_text::string_counting(const regex_node& node) {
  const auto& parts = node.parts;
  if (node.kind != node_kind::sequence || parts.size() < 3 ||
      parts.front().kind != node_kind::begin || parts.back().kind != node_kind::end)
    return std::nullopt;
  regex_node body = node;
  body.parts.pop_back();
  body.parts.erase(body.parts.begin());
  const auto text = counting_regex(body, [](const code_points& set) -> std::optional<std::string> {
    auto unit = unit_of(set, false);
    return unit.empty() ? std::nullopt : std::optional(std::move(unit));
  });
  if (!text) return std::nullopt;
  const int rule = into_->add("counting", regex_of(*text + "\""));
  into_->followed_by(rule, after_string());
  return sequence_of({text_of("\""), into_->reference(rule)});
}

/// Returns the grammar of what may follow a JSON string: white space and then a character that
/// separates or ends values, or the colon after the key of a member.
expression json_text::after_string() const {
  return sequence_of({space(), one_of(after_value_)});
}

expression json_text::char_in(const code_points& set) const {
  std::vector<expression> parts;
  const auto plain = set & unescaped;
  if (!plain.empty()) parts.push_back(one_of(plain));
  std::string letters;
  for (const auto& escape : short_escapes)
    if (set.contains(escape.stands_for)) letters += escape.letter;
  if (!letters.empty()) parts.push_back(sequence_of({text_of("\\"), one_of(letters)}));
  return choice_of(std::move(parts));
}

expression json_text::emit(const automaton& language, const std::string& hint, bool quoted) {
  if (language.empty()) return never();
  const auto n = language.states.size();
  std::vector<int> n_entries(n);
  ++n_entries[0];
  for (const auto& s : language.states)
    for (const auto& e : s.edges)
      ++n_entries[static_cast<std::size_t>(e.target)];
  // Grammar rules are made from the states of the automaton. A state that only one edge enters is
  // written into the rule of the state before it. Every other state gets a rule of its own, and so
  // does every sixteenth state, so that no rule nests deeply.
  std::vector<int> rule(n, -1);
  for (std::size_t i = 0; i < n; ++i)
    if ((n_entries[i] > 1 || i % 16 == 15) &&
        !(quoted && language.is_universal(static_cast<int>(i))))
      rule[i] = into_->add(hint);
  const std::function<expression(std::size_t)> after = [&](std::size_t at) {
    if (quoted && language.is_universal(static_cast<int>(at)))
      return into_->reference(string_rest_);
    std::vector<expression> parts;
    if (language.states[at].accepts) parts.push_back(quoted ? text_of("\"") : expression{});
    for (const auto& e : language.states[at].edges) {
      const auto to = static_cast<std::size_t>(e.target);
      auto next = rule[to] >= 0 ? into_->reference(rule[to]) : after(to);
      // Suppose that this edge takes all characters outside ASCII and all that have a short escape
      // such as \n, and that the string may continue in any way after it. The rule free_escape_,
      // which all such edges share, then matches any of these characters if it is written as an
      // escape sequence, and the rest of the string.
      const bool frees =
          quoted && language.is_universal(e.target) && e.set.covers(high | short_escaped());
      if (frees) parts.push_back(into_->reference(free_escape_));
      parts.push_back(sequence_of({!quoted ? one_of(e.set)
                                   : frees ? one_of(e.set & unescaped)
                                           : char_in(e.set),
                                   std::move(next)}));
    }
    return choice_of(std::move(parts));
  };
  for (std::size_t i = 0; i < n; ++i) {
    if (rule[i] < 0) continue;
    into_->define(rule[i], after(i));
    if (quoted) into_->followed_by(rule[i], after_string());
  }
  auto start = rule[0] >= 0 ? into_->reference(rule[0]) : after(0);
  return quoted ? sequence_of({text_of("\""), std::move(start)}) : start;
}

expression json_text::string_in(const automaton& language, const std::string& hint) {
  if (language.is_universal(0)) return any_string();
  return emit(language, hint, true);
}

expression json_text::plain_in(const automaton& language, const std::string& hint) {
  return emit(language, hint, false);
}

std::optional<expression> json_text::pattern_part(const regex_node& node) const {
  switch (node.kind) {
  case node_kind::empty:
    return expression{};
  case node_kind::chars:
    return char_in(node.chars);
  case node_kind::sequence:
  case node_kind::choice: {
    std::vector<expression> parts;
    for (const auto& part : node.parts) {
      auto inner = pattern_part(part);
      if (!inner) return std::nullopt;
      parts.push_back(std::move(*inner));
    }
    return node.kind == node_kind::choice ? choice_of(std::move(parts))
                                          : sequence_of(std::move(parts));
  }
  case node_kind::repeat: {
    auto inner = pattern_part(node.parts[0]);
    if (!inner) return std::nullopt;
    return repeat_of(std::move(*inner), node.min, node.max);
  }
  default:
    return std::nullopt;
  }
}

std::optional<expression> json_text::string_matching(const regex_node& node) const {
  regex_node body = node;
  if (body.kind != node_kind::sequence) {
    body = {node_kind::sequence, {}, {}, 0, -1, false};
    body.parts.push_back(node);
  }
  auto& parts = body.parts;
  const auto anything = repeat_of(char_in(code_points::all()), 0, -1);
  const bool at_begin = !parts.empty() && parts.front().kind == node_kind::begin;
  if (at_begin) parts.erase(parts.begin());
  const bool at_end = !parts.empty() && parts.back().kind == node_kind::end;
  if (at_end) parts.pop_back();
  auto inner = pattern_part(body);
  if (!inner) return std::nullopt;
  return sequence_of({text_of("\""), at_begin ? expression{} : anything, std::move(*inner),
                      at_end ? expression{} : anything, text_of("\"")});
}

expression json_text::fixed(const value& v) const {
  if (const auto* b = v.as_bool()) return text_of(*b ? "true" : "false");
  if (v.is_null()) return text_of("null");
  if (v.as_number().has_value()) {
    const auto text = number_text(v);
    // An integer that the schema spells 1.0 may also be spelled 1.
    if (text.ends_with(".0"))
      return choice_of({text_of(text), text_of(text.substr(0, text.size() - 2))});
    return text_of(text);
  }
  if (const auto* s = v.as_string()) {
    std::vector<expression> parts{text_of("\"")};
    for (const auto c : code_points_of(*s)) {
      auto spelled = char_in({c, c});
      if (c >= 0x80 || c < 0x20)
        spelled = choice_of({std::move(spelled), text_of(escaped_units(c))});
      // A plain character has only one spelling here: a fixed text is the fastest to match.
      if (c < 0x80 && unescaped.contains(c)) {
        std::string text;
        append_utf8(text, c);
        spelled = text_of(text);
      }
      parts.push_back(std::move(spelled));
    }
    parts.push_back(text_of("\""));
    return sequence_of(std::move(parts));
  }
  const auto ws = space();
  std::vector<expression> parts;
  if (const auto* list = v.as_list()) {
    parts.push_back(text_of("["));
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (i > 0) parts.insert(parts.end(), {ws, text_of(",")});
      parts.insert(parts.end(), {ws, fixed((*list)[i])});
    }
    parts.insert(parts.end(), {ws, text_of("]")});
  } else {
    parts.push_back(text_of("{"));
    bool first = true;
    for (const auto& [key, inner] : *v.as_object()) {
      if (!std::exchange(first, false)) parts.insert(parts.end(), {ws, text_of(",")});
      parts.insert(parts.end(), {ws, fixed(value(key)), ws, text_of(":"), ws, fixed(inner)});
    }
    parts.insert(parts.end(), {ws, text_of("}")});
  }
  return sequence_of(std::move(parts));
}

} // namespace twill::models::grammar
