#include "models/text/grammar/schema/regex_grammar.hpp"

#include <optional>
#include <utility>

#include "models/text/grammar/errc.hpp"
#include "models/text/grammar/schema/automaton.hpp"
#include "models/text/grammar/schema/json_text.hpp"
#include "models/text/grammar/schema/regex_syntax.hpp"
#include "models/text/grammar/schema/regex_text.hpp"
#include "models/text/grammar/schema/rules.hpp"
#include "models/text/grammar/schema/search_automaton.hpp"
#include "models/text/grammar/schema/utf8.hpp"

namespace twill::models::grammar {
namespace {

using node_kind = regex_node_kind;

const code_points halves_of_pairs(0xd800, 0xdfff);

/// Converts the regular expression to grammar rules that keep its repetition counts as counts.
/// Returns none if the expression contains an assertion.
std::optional<expression> written(const regex_node& node) {
  switch (node.kind) {
  case node_kind::empty:
    return expression{};
  case node_kind::chars:
    return one_of(node.chars - halves_of_pairs);
  case node_kind::sequence:
  case node_kind::choice: {
    std::vector<expression> parts;
    for (const auto& part : node.parts) {
      auto inner = written(part);
      if (!inner) return std::nullopt;
      parts.push_back(std::move(*inner));
    }
    return node.kind == node_kind::choice ? choice_of(std::move(parts))
                                          : sequence_of(std::move(parts));
  }
  case node_kind::repeat: {
    auto inner = written(node.parts[0]);
    if (!inner) return std::nullopt;
    return repeat_of(std::move(*inner), node.min, node.max);
  }
  default:
    return std::nullopt;
  }
}

/// Removes ^ from the beginning and $ from the end, which have no effect in an expression that must
/// match the whole text.
regex_node without_anchors(regex_node node) {
  auto& parts = node.parts;
  if (node.kind == node_kind::choice)
    for (auto& part : parts)
      part = without_anchors(std::move(part));
  if (node.kind == node_kind::sequence) {
    if (!parts.empty() && parts.front().kind == node_kind::begin) parts.erase(parts.begin());
    if (!parts.empty() && parts.back().kind == node_kind::end) parts.pop_back();
  }
  if (node.kind == node_kind::begin || node.kind == node_kind::end) node = {};
  return node;
}

} // namespace

std::string grammar_of_regex(std::string_view pattern) {
  rules into;
  const auto node = parse_regex(pattern);
  const auto whole = without_anchors(node);
  const auto counting =
      counting_regex(whole, [](const code_points& set) -> std::optional<std::string> {
        const auto known = set - halves_of_pairs;
        return known.empty() ? std::nullopt : std::optional(regex_class(known));
      });
  auto body = counting ? std::optional(regex_of(*counting)) : written(whole);
  if (!body) {
    // Lookaheads and inner anchors need the automaton, which evaluates ^ and $ at their places.
    const bool anchored = node.kind == node_kind::sequence && node.parts.size() > 1 &&
                          node.parts.front().kind == node_kind::begin &&
                          node.parts.back().kind == node_kind::end;
    json_text text(into);
    body = text.plain_in(
        search_automaton(anchored ? std::string(pattern) : "^(?:" + std::string(pattern) + ")$"),
        "regex");
  }
  auto out = into.ebnf(into.add("regex", std::move(*body)));
  if (!out)
    refuse(errc::unsatisfiable, "no text matches the regular expression " + std::string(pattern));
  return std::move(*out);
}

std::string grammar_of_choices(const std::vector<std::string>& choices) {
  if (choices.empty()) refuse(errc::bad_grammar, "a choice needs at least one text");
  rules into;
  std::vector<expression> parts;
  for (const auto& choice : choices)
    parts.push_back(text_of(choice));
  return *into.ebnf(into.add("choice", choice_of(std::move(parts))));
}

} // namespace twill::models::grammar
