// variable_scope: sets or unsets an environment variable until the end of a scope.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace twill::tests {

class variable_scope {
public:
  variable_scope(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  variable_scope(const variable_scope&) = delete;
  variable_scope& operator=(const variable_scope&) = delete;
  ~variable_scope() { set(before_ ? before_->c_str() : nullptr); }

private:
  void set(const char* value) {
    if (value != nullptr)
      ::setenv(name_.c_str(), value, 1);
    else
      ::unsetenv(name_.c_str());
  }

  std::string name_;
  std::optional<std::string> before_;
};

} // namespace twill::tests
