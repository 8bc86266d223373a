// breach: describes a value that breaks the rule of its field, in a configuration or in a request:
// the field, the rule and the value. A plain value.
#pragma once

#include <string>

namespace twill {

struct breach {
  std::string field;
  std::string rule;  ///< what follows "must": "be at least 1", "have at most 4 entries"
  std::string given; ///< the value that breaks the rule, and what it is if that is not obvious
};

/// "`field` must RULE, got GIVEN".
inline std::string text_of(const breach& b) {
  return "`" + b.field + "` must " + b.rule + ", got " + b.given;
}

} // namespace twill
