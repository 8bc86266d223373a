#include "models/text/grammar/schema/regex_automaton.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "models/text/grammar/errc.hpp"
#include "models/text/grammar/schema/minimal.hpp"

namespace twill::models::grammar {
namespace {

/// The non-deterministic automaton of one regular expression (Thompson's construction).
struct nfa {
  enum class epsilon { always, at_begin, at_end };
  struct state {
    std::vector<std::pair<code_points, int>> edges;
    std::vector<std::pair<epsilon, int>> epsilons;
  };
  std::vector<state> states;
  static constexpr std::size_t max_states = 20000;

  int add() {
    if (states.size() >= max_states) refuse_too_large();
    states.emplace_back();
    return static_cast<int>(states.size()) - 1;
  }
  void skip(int from, int to, epsilon when = epsilon::always) {
    states[static_cast<std::size_t>(from)].epsilons.push_back({when, to});
  }

  /// Adds `node` after state `from`. Returns the state that is reached after `node`.
  int append(const regex_node& node, int from) {
    switch (node.kind) {
    case regex_node_kind::empty:
      return from;
    case regex_node_kind::chars: {
      const int to = add();
      states[static_cast<std::size_t>(from)].edges.push_back({node.chars, to});
      return to;
    }
    case regex_node_kind::sequence:
      for (const auto& part : node.parts)
        from = append(part, from);
      return from;
    case regex_node_kind::choice: {
      const int to = add();
      for (const auto& part : node.parts) {
        const int branch = add();
        skip(from, branch);
        skip(append(part, branch), to);
      }
      return to;
    }
    case regex_node_kind::repeat:
      return append_repeat(node, from);
    case regex_node_kind::begin: {
      const int to = add();
      skip(from, to, epsilon::at_begin);
      return to;
    }
    case regex_node_kind::end: {
      const int to = add();
      skip(from, to, epsilon::at_end);
      return to;
    }
    case regex_node_kind::lookahead:
      refuse(errc::unsupported, "lookahead is enforced right after `^` only");
    }
    return from;
  }

  int append_repeat(const regex_node& node, int from) {
    const auto& part = node.parts.front();
    for (int i = 0; i < node.min; ++i)
      from = append(part, from);
    const int to = add();
    if (node.max < 0) {
      const int loop = add();
      skip(from, loop);
      skip(append(part, loop), loop);
      skip(loop, to);
      return to;
    }
    skip(from, to);
    for (int i = node.min; i < node.max; ++i) {
      from = append(part, from);
      skip(from, to);
    }
    return to;
  }
};

using state_set = std::vector<int>;

/// Returns the states that can be reached from the states `from` without reading a character. The
/// assertion ^ holds if `at_begin` is true, and $ if `at_end` is true.
state_set closure(const nfa& n, state_set from, bool at_begin, bool at_end) {
  std::vector<bool> seen(n.states.size());
  state_set out, todo = std::move(from);
  while (!todo.empty()) {
    const int at = todo.back();
    todo.pop_back();
    if (seen[static_cast<std::size_t>(at)]) continue;
    seen[static_cast<std::size_t>(at)] = true;
    out.push_back(at);
    for (const auto& [when, to] : n.states[static_cast<std::size_t>(at)].epsilons)
      if (when == nfa::epsilon::always || (when == nfa::epsilon::at_begin ? at_begin : at_end))
        todo.push_back(to);
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// Splits the characters of `edges` (pairs of a character set and a target state) into disjoint
/// sets. Each set is returned with all states to which its characters lead.
std::vector<std::pair<code_points, state_set>>
split(const std::vector<std::pair<code_points, int>>& edges) {
  std::map<std::uint32_t, std::pair<std::vector<int>, std::vector<int>>> bounds; // starts, ends
  for (const auto& [set, to] : edges)
    for (const auto& range : set.ranges()) {
      bounds[range.first].first.push_back(to);
      bounds[range.last + 1].second.push_back(to);
    }
  std::map<state_set, std::vector<code_point_range>> parts;
  std::map<int, int> open;
  for (auto it = bounds.begin(); it != bounds.end(); ++it) {
    for (const int to : it->second.first)
      ++open[to];
    for (const int to : it->second.second)
      if (--open[to] == 0) open.erase(to);
    if (open.empty()) continue;
    state_set targets;
    for (const auto& [to, count] : open)
      targets.push_back(to);
    parts[targets].push_back({it->first, std::next(it)->first - 1});
  }
  std::vector<std::pair<code_points, state_set>> out;
  for (auto& [targets, ranges] : parts)
    out.push_back({code_points(std::move(ranges)), targets});
  return out;
}

automaton determinised(const nfa& n, int start, int accept) {
  automaton out;
  out.states.clear();
  // Each state of the result stands for a set of states of `n`. The first state is kept apart from
  // a later state that stands for the same set, because `^` holds only at the beginning.
  std::map<std::pair<bool, state_set>, int> ids;
  std::vector<std::pair<bool, state_set>> todo;
  const auto id_of = [&](bool at_begin, state_set set) {
    const auto [it, is_new] =
        ids.emplace(std::pair{at_begin, std::move(set)}, static_cast<int>(out.states.size()));
    if (is_new) {
      if (out.states.size() >= automaton::max_states) refuse_too_large();
      out.states.emplace_back();
      todo.push_back(it->first);
    }
    return it->second;
  };
  id_of(true, closure(n, {start}, true, false));
  for (std::size_t i = 0; i < todo.size(); ++i) {
    const auto [at_begin, set] = todo[i];
    const auto at_end = closure(n, set, at_begin, true);
    out.states[i].accepts = std::binary_search(at_end.begin(), at_end.end(), accept);
    std::vector<std::pair<code_points, int>> edges;
    for (const int s : set)
      for (const auto& edge : n.states[static_cast<std::size_t>(s)].edges)
        edges.push_back(edge);
    for (auto& [chars, targets] : split(edges)) {
      const int to = id_of(false, closure(n, targets, false, false));
      out.states[i].edges.push_back({chars, to});
    }
  }
  return minimal(out);
}

} // namespace

automaton found_anywhere(const regex_node& node, bool from_begin) {
  nfa n;
  const int start = n.add();
  if (!from_begin)
    n.states[static_cast<std::size_t>(start)].edges.push_back({code_points::all(), start});
  const int enter = n.add();
  n.skip(start, enter);
  const int found = n.append(node, enter);
  // Any characters may follow a match. If the match ends with `$`, this edge is never used, because
  // `$` holds only at the end of the text.
  n.states[static_cast<std::size_t>(found)].edges.push_back({code_points::all(), found});
  return determinised(n, start, found);
}

} // namespace twill::models::grammar
