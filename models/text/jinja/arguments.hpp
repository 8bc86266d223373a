// arguments: binds a call's arguments to the parameter names of a built-in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/jinja/runtime.hpp"
#include "models/text/jinja/value.hpp"

namespace twill::models::jinja {

/// The arguments of one call, bound to the parameter names of a built-in and found by the index of
/// the parameter in `names`. The call_args that the constructor takes must outlive this object.
class arguments {
public:
  /// Fails on too many arguments, unknown names and names given twice.
  arguments(runtime& rt, std::string_view function, const call_args& args,
            std::initializer_list<const char*> names, std::size_t required = 0);

  const val* get(std::size_t i) const { return bound_[i]; } ///< nullptr when not given
  /// The defaults apply when the argument is not given.
  std::int64_t whole(std::size_t i, std::int64_t otherwise) const;
  bool flag(std::size_t i, bool otherwise) const;
  /// The argument's text; nullptr if the argument is not given or is None. Fails if it is not a
  /// string.
  const text* string(std::size_t i) const;

private:
  std::string describe(std::size_t i) const;

  runtime& rt_;
  std::string_view function_;
  std::vector<const char*> names_;
  std::vector<const val*> bound_;
};

} // namespace twill::models::jinja
