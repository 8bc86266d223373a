// cache_scope: who may find whose cached prefixes. Prompts find only blocks that were computed in
// their own scope: that of a tenant, divided further by the salt that a request may name.
#pragma once

#include <cstdint>
#include <string_view>

namespace twill::actors {

/// 0 for no tenant and no salt. Otherwise a keyed hash (SipHash-2-4) of both, whose key is drawn
/// once per process: nobody can make up a salt that leads into another tenant's scope. Any thread.
std::uint64_t cache_scope(std::string_view tenant, std::string_view salt);

} // namespace twill::actors
