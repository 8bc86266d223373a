#include "actors/kv/cache_scope.hpp"

#include <cstddef>
#include <mutex>
#include <random>
#include <string>

namespace twill::actors {

namespace {

/// The key with which this process hashes cache scopes (cache_scope.hpp): drawn at random when it
/// is first needed, unless use_scope_key() has set a stored key.
struct key_of_process {
  std::mutex mutex;
  hash_key key;
  bool known = false;
};

key_of_process& process_key() {
  static key_of_process one;
  return one;
}

std::uint64_t hash_of(const hash_key& key, std::string_view text) {
  keyed_hash state(key);
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[i])) << (8 * (i % 8));
    if (i % 8 != 7) continue;
    state.add(word);
    word = 0;
  }
  state.add(word | static_cast<std::uint64_t>(text.size()) << 56);
  return state.finish();
}

} // namespace

hash_key draw_hash_key() {
  std::random_device source;
  const auto word = [&] {
    return (static_cast<std::uint64_t>(source()) << 32) | static_cast<std::uint64_t>(source());
  };
  const std::uint64_t first = word();
  return {first, word()};
}

hash_key scope_key() {
  key_of_process& own = process_key();
  const std::lock_guard lock(own.mutex);
  if (!own.known) own.key = draw_hash_key();
  own.known = true;
  return own.key;
}

void use_scope_key(const hash_key& kept) {
  key_of_process& own = process_key();
  const std::lock_guard lock(own.mutex);
  own.key = kept;
  own.known = true;
}

std::optional<std::uint64_t> published_scope(const config::kv_options& kv,
                                             const std::vector<config::tenant_options>& tenants) {
  if (kv.share_prefixes || tenants.empty()) return cache_scope("", "");
  if (tenants.size() > 1) return std::nullopt;
  return cache_scope(tenants.front().name, "");
}

std::uint64_t cache_scope(std::string_view tenant, std::string_view salt) {
  if (tenant.empty() && salt.empty()) return 0;
  // The text to hash has the tenant, a null character and the salt. A tenant's name holds no null
  // character, so no other tenant and salt give the same text.
  std::string both(tenant);
  both += '\0';
  both += salt;
  const std::uint64_t scope = hash_of(scope_key(), both);
  return scope == 0 ? 1 : scope;
}

} // namespace twill::actors
