// What a reload of the configuration changes in a running daemon, and what waits for a restart.
//
// Pure functions, any thread. The keys that reload are listed in reload.cpp; config/reference.md
// marks them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/options.hpp"

namespace twill::config {

/// One key whose value differs. A member of a tenant is "tenants.NAME.member", and a tenant that
/// came or went is "tenants.NAME".
struct key_change {
  std::string key;
  /// The values as TOML. Those of secret keys, and of tenants that came or went, are told in words:
  /// "2 keys", "absent".
  std::string before, after;

  bool operator==(const key_change&) const = default;
};

/// Whether a running daemon takes over a new value of this key.
bool reloads(std::string_view key);

/// All keys that differ, in the order of the reference; tenants come last, by name.
std::vector<key_change> changes_between(const options& before, const options& after);

/// `in_force` with the values of `loaded` for every key that reloads.
options take_reloads(const options& in_force, const options& loaded);

} // namespace twill::config
