// members: access to the members of a JSON object that may be absent or null. The functions are
// pure; any thread may call them.
#pragma once

#include <string>
#include <string_view>

#include "config/base/value.hpp"

namespace twill::net {

/// Returns the member; nullptr if it is absent or JSON's null, or if `object` is not an object.
inline const value* member(const value& object, std::string_view name) {
  const auto* found = object.find(name);
  return found == nullptr || found->is_null() ? nullptr : found;
}

/// The text of a string value; empty if `v` is null or not a string.
inline std::string text_of(const value* v) {
  return v != nullptr && v->as_string() != nullptr ? *v->as_string() : std::string();
}

} // namespace twill::net
