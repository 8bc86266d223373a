// environment: variables that are meant for this process alone. Before other threads exist.
#pragma once

#include <cstdlib>
#include <string>

namespace twill::tools {

/// The variable's value, or nothing; it is removed, so that no child process inherits it.
inline std::string take_variable(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  ::unsetenv(name);
  return text;
}

} // namespace twill::tools
