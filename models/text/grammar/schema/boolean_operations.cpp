#include "models/text/grammar/schema/boolean_operations.hpp"

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "models/text/grammar/schema/code_points.hpp"
#include "models/text/grammar/schema/minimal.hpp"

namespace twill::models::grammar {
namespace {

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
      if (out.states.size() >= 4 * automaton::max_states) refuse_too_large();
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

} // namespace

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

} // namespace twill::models::grammar
