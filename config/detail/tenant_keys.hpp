// The members that a configuration table [[tenants]] may have, one row for each as in
// config/detail/keys.hpp. Values of a `secret` member are printed (they are digests), but not
// repeated in errors, since an operator may have written the key itself by mistake.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/detail/keys.hpp"
#include "config/tenants.hpp"

namespace twill::config::detail {

using tenant_key = basic_key<tenant_options>;

/// "tenants.name" first, then the others in the order they are printed.
std::span<const tenant_key> tenant_keys();

/// 64 lower-case hex digits.
bool is_digest(std::string_view text);

} // namespace twill::config::detail
