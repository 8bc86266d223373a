#include "models/text/grammar/schema/automaton.hpp"

#include <algorithm>
#include <utility>

#include "models/text/grammar/errc.hpp"
#include "models/text/grammar/schema/minimal.hpp"
#include "models/text/grammar/schema/utf8.hpp"

namespace twill::models::grammar {

void refuse_too_large() {
  refuse(errc::too_large, "a string's patterns and lengths together need too many states");
}

std::vector<bool> automaton::productive_states() const {
  std::vector<std::vector<int>> from(states.size());
  std::vector<int> todo;
  std::vector<bool> out(states.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    for (const auto& e : states[i].edges)
      from[static_cast<std::size_t>(e.target)].push_back(static_cast<int>(i));
    if (states[i].accepts) todo.push_back(static_cast<int>(i));
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

bool automaton::empty() const {
  return !productive_states()[0];
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
  const auto productive = productive_states();
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
  const auto productive = a.productive_states();
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

automaton length_automaton(std::int64_t min, std::int64_t max) {
  automaton out;
  out.states.clear();
  const auto n = max >= 0 ? max : min;
  if (n + 1 > static_cast<std::int64_t>(automaton::max_states)) refuse_too_large();
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

} // namespace twill::models::grammar
