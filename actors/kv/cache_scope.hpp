// cache_scope: who may find whose cached prefixes. Prompts find only blocks that were computed in
// their own scope: that of a tenant, divided further by the salt that a request may name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "actors/kv/keyed_hash.hpp"
#include "config/options.hpp"

namespace twill::actors {

/// 0 for no tenant and no salt. Otherwise a keyed hash of both: nobody can make up a salt that
/// leads into another tenant's scope. Any thread.
std::uint64_t cache_scope(std::string_view tenant, std::string_view salt);

/// The scope of all requests without a salt, where they have the same one: nobody needs a key,
/// there is one tenant, or tenants share prefixes.
std::optional<std::uint64_t> published_scope(const config::kv_options& kv,
                                             const std::vector<config::tenant_options>& tenants);

hash_key draw_hash_key();
/// The key of this process's scopes. It is drawn once per process, unless use_scope_key() was
/// called before.
hash_key scope_key();
/// Where blocks outlive the process (`kv.keep`), scopes must too: `kept` is the key that they were
/// made with. To be called before the first scope is made.
void use_scope_key(const hash_key& kept);

} // namespace twill::actors
