#include "models/text/grammar/schema/minimal.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "models/text/grammar/schema/code_points.hpp"

namespace twill::models::grammar {
namespace {

/// Moore's algorithm takes quadratic time on long chains. In an automaton with more states than
/// this, states are not merged, and only those that lead to no accepting state are removed.
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

automaton minimal(const automaton& a) {
  const auto productive = a.productive_states();
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
