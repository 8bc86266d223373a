// environment: reads environment variables that are meant for this process only. Call before other
// threads exist.
#pragma once

#include <cstdlib>
#include <string>

namespace twill::tools {

/// Returns the variable's value, or nothing. Removes the variable, so that no child process
/// inherits it.
inline std::string take_variable(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  ::unsetenv(name);
  return text;
}

} // namespace twill::tools
