// Determines which configuration changes a reload applies to a running daemon, and which need a
// restart.
//
// Pure functions, which any thread may call. The keys that reload are listed in reload.cpp;
// config/reference.md marks them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/options.hpp"

namespace twill::config {

/// A key whose value has changed. A member of a tenant is named "tenants.NAME.member"; a tenant
/// that was added or removed is named "tenants.NAME".
struct key_change {
  std::string key;
  /// The values as TOML. Secret values, and tenants that were added or removed, are described in
  /// words: "2 keys", "absent".
  std::string before, after;

  bool operator==(const key_change&) const = default;
};

/// Whether a reload applies a new value of this key.
bool reloads(std::string_view key);

/// All changed keys, in the order of the reference; tenants come last, by name.
std::vector<key_change> changes_between(const options& before, const options& after);

/// `in_force` with the values of `loaded` for every key that reloads.
options take_reloads(const options& in_force, const options& loaded);

} // namespace twill::config
