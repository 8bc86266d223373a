#include "models/text/grammar/schema/patterns.hpp"

#include "models/text/grammar/schema/search_automaton.hpp"

namespace twill::models::grammar {

const automaton& patterns::of(const std::string& pattern) {
  const auto found = built_.find(pattern);
  if (found != built_.end()) return found->second;
  return built_.emplace(pattern, search_automaton(pattern)).first->second;
}

bool patterns::found_in(const std::string& pattern, const std::string& text) {
  return of(pattern).accepts(text);
}

} // namespace twill::models::grammar
