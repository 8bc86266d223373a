#include "models/text/grammar/schema/search_automaton.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "models/text/grammar/errc.hpp"
#include "models/text/grammar/schema/boolean_operations.hpp"
#include "models/text/grammar/schema/regex_automaton.hpp"
#include "models/text/grammar/schema/regex_syntax.hpp"

namespace twill::models::grammar {
namespace {

/// Makes the automaton of one alternative. Lookaheads right after `^` restrict the whole string.
automaton found_alternative(const regex_node& node) {
  std::vector<const regex_node*> lookaheads;
  regex_node rest = node;
  if (node.kind == regex_node_kind::sequence && !node.parts.empty() &&
      node.parts.front().kind == regex_node_kind::begin) {
    std::size_t i = 1;
    for (; i < node.parts.size() && node.parts[i].kind == regex_node_kind::lookahead; ++i)
      lookaheads.push_back(&node.parts[i]);
    rest.parts.erase(rest.parts.begin() + 1, rest.parts.begin() + static_cast<std::ptrdiff_t>(i));
  }
  auto out = found_anywhere(rest, false);
  for (const auto* look : lookaheads) {
    const auto ahead = found_anywhere(look->parts.front(), true);
    out = intersection(out, look->negative ? complement(ahead) : ahead);
  }
  return out;
}

} // namespace

automaton search_automaton(std::string_view pattern) {
  const auto node = parse_regex(pattern);
  try {
    if (node.kind != regex_node_kind::choice) return found_alternative(node);
    // One automaton serves all alternatives, unless an alternative begins with a lookahead.
    const auto has_lookahead = [](const regex_node& part) {
      return part.parts.size() > 1 && part.parts[1].kind == regex_node_kind::lookahead;
    };
    if (std::none_of(node.parts.begin(), node.parts.end(), has_lookahead))
      return found_anywhere(node, false);
    automaton out;
    for (const auto& part : node.parts)
      out = united(out, found_alternative(part));
    return out;
  } catch (refusal& r) {
    r.why.detail =
        "the regular expression " + std::string(pattern) + " is not enforced: " + r.why.detail;
    throw;
  }
}

} // namespace twill::models::grammar
