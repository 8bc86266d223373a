#include "models/text/grammar/schema/automaton.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "models/text/grammar/errc.hpp"
#include "models/text/grammar/schema/utf8.hpp"

namespace twill::models::grammar {
namespace {

[[noreturn]] void too_large() {
  refuse(errc::too_large, "a string's patterns and lengths together need too many states");
}

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
    if (states.size() >= max_states) too_large();
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

/// Returns the states that `from` reaches without a character. The assertions ^ and $ hold if
/// `at_begin` and `at_end` are set.
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

/// Splits the characters of `edges` into disjoint sets, each with all states to which its
/// characters lead.
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
  // The first state is kept apart from a later state with the same set, because `^` holds only in
  // the first state.
  std::map<std::pair<bool, state_set>, int> ids;
  std::vector<std::pair<bool, state_set>> todo;
  const auto id_of = [&](bool at_begin, state_set set) {
    const auto [it, is_new] =
        ids.emplace(std::pair{at_begin, std::move(set)}, static_cast<int>(out.states.size()));
    if (is_new) {
      if (out.states.size() >= automaton::max_states) too_large();
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

/// Accepts strings that contain a match of `node`; with `from_begin`, strings that begin with one.
automaton found_anywhere(const regex_node& node, bool from_begin) {
  nfa n;
  const int start = n.add();
  if (!from_begin)
    n.states[static_cast<std::size_t>(start)].edges.push_back({code_points::all(), start});
  const int enter = n.add();
  n.skip(start, enter);
  const int found = n.append(node, enter);
  // Any characters may follow a match. After `$` none can follow, because the assertion does not
  // hold if a character follows.
  n.states[static_cast<std::size_t>(found)].edges.push_back({code_points::all(), found});
  return determinised(n, start, found);
}

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

template <class Accepts>
automaton product(const automaton& a, const automaton& b, const Accepts& accepts) {
  // State -1 of `a` or `b` is the dead state.
  automaton out;
  out.states.clear();
  std::map<std::pair<int, int>, int> ids;
  std::vector<std::pair<int, int>> todo;
  const auto id_of = [&](int p, int q) {
    const auto [it, is_new] = ids.emplace(std::pair{p, q}, static_cast<int>(out.states.size()));
    if (is_new) {
      if (out.states.size() >= 4 * automaton::max_states) too_large();
      out.states.emplace_back();
      todo.push_back({p, q});
    }
    return it->second;
  };
  id_of(0, 0);
  static const automaton::state dead;
  for (std::size_t i = 0; i < todo.size(); ++i) {
    const auto [p, q] = todo[i];
    const auto& x = p < 0 ? dead : a.states[static_cast<std::size_t>(p)];
    const auto& y = q < 0 ? dead : b.states[static_cast<std::size_t>(q)];
    out.states[i].accepts = accepts(x.accepts, y.accepts);
    std::map<int, code_points> edges;
    const auto add = [&](const code_points& set, int p2, int q2) {
      if (set.empty() || (p2 < 0 && q2 < 0) || (!accepts(true, false) && (p2 < 0 || q2 < 0)))
        return;
      const int to = id_of(p2, q2);
      edges[to] = edges[to] | set;
    };
    code_points left_of_y = code_points::all();
    for (const auto& f : y.edges)
      left_of_y = left_of_y - f.set;
    code_points left_of_x = code_points::all();
    for (const auto& e : x.edges) {
      left_of_x = left_of_x - e.set;
      for (const auto& f : y.edges)
        add(e.set & f.set, e.target, f.target);
      add(e.set & left_of_y, e.target, -1);
    }
    for (const auto& f : y.edges)
      add(f.set & left_of_x, -1, f.target);
    for (auto& [to, set] : edges)
      out.states[i].edges.push_back({std::move(set), to});
  }
  return minimal(out);
}

/// Returns for each state whether it leads to an accepting state.
std::vector<bool> productive_states(const automaton& a) {
  std::vector<std::vector<int>> from(a.states.size());
  std::vector<int> todo;
  std::vector<bool> out(a.states.size());
  for (std::size_t i = 0; i < a.states.size(); ++i) {
    for (const auto& e : a.states[i].edges)
      from[static_cast<std::size_t>(e.target)].push_back(static_cast<int>(i));
    if (a.states[i].accepts) todo.push_back(static_cast<int>(i));
  }
  while (!todo.empty()) {
    const auto at = static_cast<std::size_t>(todo.back());
    todo.pop_back();
    if (out[at]) continue;
    out[at] = true;
    todo.insert(todo.end(), from[at].begin(), from[at].end());
  }
  return out;
}

/// Moore's algorithm takes quadratic time on long chains, so an automaton with more states than
/// this is only trimmed.
constexpr std::size_t max_minimised_states = 400;

automaton trimmed(const automaton& a, const std::vector<bool>& productive) {
  automaton out;
  out.states.clear();
  std::vector<int> number(a.states.size(), -1);
  int n = 0;
  for (std::size_t i = 0; i < a.states.size(); ++i)
    if (productive[i]) number[i] = n++;
  for (std::size_t i = 0; i < a.states.size(); ++i) {
    if (!productive[i]) continue;
    automaton::state s;
    s.accepts = a.states[i].accepts;
    for (const auto& e : a.states[i].edges)
      if (const int to = number[static_cast<std::size_t>(e.target)]; to >= 0)
        s.edges.push_back({e.set, to});
    out.states.push_back(std::move(s));
  }
  return out;
}

} // namespace

bool automaton::empty() const {
  return !productive_states(*this)[0];
}

bool automaton::accepts(std::string_view utf8) const {
  int at = 0;
  for (const auto c : code_points_of(utf8)) {
    int next = -1;
    for (const auto& e : states[static_cast<std::size_t>(at)].edges)
      if (e.set.contains(c)) next = e.target;
    if (next < 0) return false;
    at = next;
  }
  return states[static_cast<std::size_t>(at)].accepts;
}

bool automaton::is_universal(int at) const {
  const auto& s = states[static_cast<std::size_t>(at)];
  return s.accepts && s.edges.size() == 1 && s.edges[0].target == at &&
         s.edges[0].set == code_points::all();
}

automaton::lengths automaton::length_bounds() const {
  const auto n = states.size();
  const auto productive = productive_states(*this);
  lengths out;
  // Visits the states by distance from the start. The first distance with an accepting state is the
  // least length. Distances beyond the number of states mean that there is a cycle.
  std::vector<bool> level(n);
  level[0] = true;
  bool found = false;
  for (std::size_t length = 0; length <= n; ++length) {
    std::vector<bool> next(n);
    bool any = false;
    for (std::size_t i = 0; i < n; ++i) {
      if (!level[i]) continue;
      if (states[i].accepts) {
        if (!found) out.least = static_cast<std::int64_t>(length);
        found = true;
        out.greatest = static_cast<std::int64_t>(length);
      }
      for (const auto& e : states[i].edges)
        if (productive[static_cast<std::size_t>(e.target)]) {
          next[static_cast<std::size_t>(e.target)] = true;
          any = true;
        }
    }
    if (!any) return out;
    level = std::move(next);
  }
  out.greatest.reset();
  return out;
}

std::optional<std::vector<std::string>> words_of(const automaton& a, std::size_t most) {
  const auto productive = productive_states(a);
  // Each round lengthens all prefixes of words by one code point.
  std::vector<std::string> words;
  std::vector<std::pair<int, std::string>> beginnings;
  if (productive[0]) beginnings.push_back({0, ""});
  for (std::size_t length = 0; !beginnings.empty(); ++length) {
    if (length > a.states.size()) return std::nullopt; // there is a cycle
    std::vector<std::pair<int, std::string>> longer;
    for (const auto& [at, text] : beginnings) {
      const auto& state = a.states[static_cast<std::size_t>(at)];
      if (state.accepts) words.push_back(text);
      for (const auto& e : state.edges) {
        if (!productive[static_cast<std::size_t>(e.target)]) continue;
        for (const auto& range : e.set.ranges())
          for (auto c = range.first; c <= range.last; ++c) {
            // Each prefix can be completed to a different word.
            if (words.size() + longer.size() >= most) return std::nullopt;
            longer.push_back({e.target, text});
            append_utf8(longer.back().second, c);
          }
      }
    }
    beginnings = std::move(longer);
  }
  return words;
}

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

automaton length_automaton(std::int64_t min, std::int64_t max) {
  automaton out;
  out.states.clear();
  const auto n = max >= 0 ? max : min;
  if (n + 1 > static_cast<std::int64_t>(automaton::max_states)) too_large();
  for (std::int64_t i = 0; i <= n; ++i) {
    automaton::state s;
    s.accepts = i >= min;
    if (i < n) s.edges.push_back({code_points::all(), static_cast<int>(i + 1)});
    if (i == n && max < 0) s.edges.push_back({code_points::all(), static_cast<int>(i)});
    out.states.push_back(std::move(s));
  }
  return out;
}

automaton literal_automaton(std::span<const std::string> texts) {
  automaton out;
  for (const auto& text : texts) {
    std::size_t at = 0;
    for (const auto c : code_points_of(text)) {
      auto& edges = out.states[at].edges;
      const auto found = std::find_if(edges.begin(), edges.end(),
                                      [c](const auto& e) { return e.set.contains(c); });
      if (found != edges.end()) {
        at = static_cast<std::size_t>(found->target);
        continue;
      }
      const auto next = out.states.size();
      edges.push_back({{c, c}, static_cast<int>(next)});
      out.states.emplace_back();
      at = next;
    }
    out.states[at].accepts = true;
  }
  return minimal(out);
}

automaton intersection(const automaton& a, const automaton& b) {
  return product(a, b, [](bool x, bool y) { return x && y; });
}

automaton united(const automaton& a, const automaton& b) {
  return product(a, b, [](bool x, bool y) { return x || y; });
}

automaton complement(const automaton& a) {
  automaton out = a;
  const int sink = static_cast<int>(out.states.size());
  out.states.push_back({{{code_points::all(), sink}}, false});
  for (auto& s : out.states) {
    code_points left = code_points::all();
    for (const auto& e : s.edges)
      left = left - e.set;
    if (!left.empty()) s.edges.push_back({left, sink});
    s.accepts = !s.accepts;
  }
  return minimal(out);
}

automaton minimal(const automaton& a) {
  const auto productive = productive_states(a);
  if (!productive[0]) return {};
  const auto n = a.states.size();
  if (n > max_minimised_states) return trimmed(a, productive);
  // Moore's algorithm: groups of states are split by the groups to which their characters lead,
  // until no group changes.
  std::vector<int> group(n, -1);
  for (std::size_t i = 0; i < n; ++i)
    if (productive[i]) group[i] = a.states[i].accepts ? 1 : 0;
  using signature = std::pair<int, std::map<int, code_points>>;
  const auto signature_of = [&](std::size_t i) {
    signature s{group[i], {}};
    for (const auto& e : a.states[i].edges)
      if (const int to = group[static_cast<std::size_t>(e.target)]; to >= 0)
        s.second[to] = s.second[to] | e.set;
    return s;
  };
  const auto less = [](const signature& x, const signature& y) {
    if (x.first != y.first) return x.first < y.first;
    return std::lexicographical_compare(
        x.second.begin(), x.second.end(), y.second.begin(), y.second.end(),
        [](const auto& p, const auto& q) {
          if (p.first != q.first) return p.first < q.first;
          const auto &u = p.second.ranges(), &v = q.second.ranges();
          return std::lexicographical_compare(
              u.begin(), u.end(), v.begin(), v.end(), [](const auto& s, const auto& t) {
                return std::pair{s.first, s.last} < std::pair{t.first, t.last};
              });
        });
  };
  std::size_t n_groups = 0;
  std::vector<std::size_t> sample;
  while (true) {
    std::map<signature, int, decltype(less)> ids(less);
    std::vector<int> next(n, -1);
    sample.clear();
    for (std::size_t i = 0; i < n; ++i) {
      if (!productive[i]) continue;
      const auto [it, is_new] = ids.emplace(signature_of(i), static_cast<int>(ids.size()));
      if (is_new) sample.push_back(i);
      next[i] = it->second;
    }
    group = std::move(next);
    if (ids.size() == n_groups) break;
    n_groups = ids.size();
  }
  // Groups are numbered by a walk from the start, so that state 0 is the start.
  automaton out;
  out.states.clear();
  std::vector<int> number(n_groups, -1);
  std::vector<int> order;
  const auto visit = [&](int g) {
    if (number[static_cast<std::size_t>(g)] < 0) {
      number[static_cast<std::size_t>(g)] = static_cast<int>(order.size());
      order.push_back(g);
    }
    return number[static_cast<std::size_t>(g)];
  };
  visit(group[0]);
  for (std::size_t k = 0; k < order.size(); ++k) {
    const auto i = sample[static_cast<std::size_t>(order[k])];
    automaton::state s;
    s.accepts = a.states[i].accepts;
    for (auto& [to, set] : signature_of(i).second)
      s.edges.push_back({set, visit(to)});
    out.states.push_back(std::move(s));
  }
  return out;
}

} // namespace twill::models::grammar
