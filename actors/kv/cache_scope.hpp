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

/// Returns the scope of a tenant's requests with this salt: 0 for no tenant and no salt, otherwise
/// a keyed hash of both. Without the key, no client can find a salt whose hash is the scope of
/// another tenant. Any thread.
std::uint64_t cache_scope(std::string_view tenant, std::string_view salt);

/// Returns the cache scope of the requests without a salt, whose cached blocks are announced to
/// routers. Returns nullopt if these requests have several scopes: there are several tenants, and
/// they do not share prefixes.
std::optional<std::uint64_t> published_scope(const config::kv_options& kv,
                                             const std::vector<config::tenant_options>& tenants);

hash_key draw_hash_key();
/// Returns the key with which this process hashes cache scopes (see cache_scope()). It is drawn at
/// random once per process, unless use_scope_key() was called before.
hash_key scope_key();
/// Sets the key with which this process hashes cache scopes (see cache_scope()). If KV blocks
/// outlive the process (`kv.keep`), the scopes must be the same in later processes: `kept` is the
/// key that was used when the blocks on disk were named. Must be called before the first scope is
/// computed.
void use_scope_key(const hash_key& kept);

} // namespace twill::actors
