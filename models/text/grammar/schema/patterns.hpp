// patterns: caches the automata of a schema's regular expressions and formats, so that each is
// built once.
//
// One thread at a time. Throws the exception refusal for an expression that twill does not enforce.
#pragma once

#include <map>
#include <string>

#include "models/text/grammar/schema/automaton.hpp"

namespace twill::models::grammar {

class patterns {
public:
  const automaton& of(const std::string& pattern);
  bool found_in(const std::string& pattern, const std::string& text);

private:
  std::map<std::string, automaton> built_;
};

} // namespace twill::models::grammar
