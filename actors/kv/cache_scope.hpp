// cache_scope: limits which requests may find which cached prefixes. A prompt finds only blocks
// that were computed in its own scope: the scope of its tenant, divided further by the salt that a
// request may name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "actors/kv/keyed_hash.hpp"
#include "config/options.hpp"

namespace twill::actors {

/// Returns 0 for no tenant and no salt, otherwise a keyed hash of both. Without the key, no client
/// can make up a salt that leads into another tenant's scope. Any thread.
std::uint64_t cache_scope(std::string_view tenant, std::string_view salt);

/// The scope of all requests without a salt, if they all have the same one: no keys are needed,
/// there is one tenant, or tenants share prefixes. Otherwise nullopt.
std::optional<std::uint64_t> published_scope(const config::kv_options& kv,
                                             const std::vector<config::tenant_options>& tenants);

hash_key draw_hash_key();
/// The key of this process's scopes. The key is drawn once per process, unless use_scope_key() was
/// called before.
hash_key scope_key();
/// Sets the key of this process's scopes. If blocks outlive the process (`kv.keep`), scopes must
/// stay the same too: `kept` is the key with which the kept blocks were named. Must be called
/// before the first scope is computed.
void use_scope_key(const hash_key& kept);

} // namespace twill::actors
