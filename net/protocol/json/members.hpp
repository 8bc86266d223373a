// members: reading a JSON object whose members may be absent or null. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "config/base/value.hpp"

namespace twill::net {

/// The member, or null where it is absent, is JSON's null, or `object` is no object.
inline const value* member(const value& object, std::string_view name) {
  const auto* found = object.find(name);
  return found == nullptr || found->is_null() ? nullptr : found;
}

/// The text of a string; empty for everything else.
inline std::string text_of(const value* v) {
  return v != nullptr && v->as_string() != nullptr ? *v->as_string() : std::string();
}

} // namespace twill::net
