// automaton: a deterministic finite automaton over code points. It describes exactly which values a
// JSON string may have.
//
// An automaton is plain data. State 0 is the start; a character for which a state has no edge
// rejects the string. Every operation throws the exception refusal (too_large) if it would need
// more than max_states states, so that a hostile pattern costs bounded time and memory. An
// automaton reads strings without quotes and escapes; json_text.hpp turns it into a grammar of the
// JSON spellings of these strings.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/grammar/schema/code_points.hpp"

namespace twill::models::grammar {

struct automaton {
  struct edge {
    code_points set;
    int target = 0;
    bool operator==(const edge&) const = default;
  };
  struct state {
    std::vector<edge> edges; ///< disjoint sets, one edge per target
    bool accepts = false;
  };

  std::vector<state> states{1}; ///< by default the automaton accepts nothing

  static constexpr std::size_t max_states = 4000;

  bool empty() const;
  bool accepts(std::string_view utf8) const;
  /// Returns for each state whether it leads to an accepting state.
  std::vector<bool> productive_states() const;
  /// True where every string from this state on is accepted.
  bool is_universal(int at) const;
  /// The least and the greatest number of code points in an accepted string. `greatest` is empty if
  /// accepted strings may have any length.
  struct lengths {
    std::int64_t least = 0;
    std::optional<std::int64_t> greatest;
  };
  /// The language must not be empty.
  lengths length_bounds() const;
};

/// Returns the automaton that accepts all strings of `min` to `max` code points; max -1: no bound.
automaton length_automaton(std::int64_t min, std::int64_t max);
/// Returns the automaton that accepts exactly the given texts.
automaton literal_automaton(std::span<const std::string> texts);

/// Returns all strings that the automaton accepts, or nullopt if there are more than `most`.
std::optional<std::vector<std::string>> words_of(const automaton& a, std::size_t most);

/// Throws refusal (too_large), which says that an automaton needs more states than it may have.
[[noreturn]] void refuse_too_large();

} // namespace twill::models::grammar
