// response_store: the conversations that a request's `previous_response_id` may continue, except
// those that end with a stored response (net/stored). They come from warm-ups, which are requests
// with `generate: false`, and from WebSocket requests with `store: false`. The number of entries
// and their bytes are bounded.
//
// Thread safety: every function may be called from any thread (one mutex, held briefly).
// Invariant: held bytes <= max_bytes. To make room, the oldest entries of the tenant that holds the
// most (counting the new entry) are removed, so that a tenant with many entries cannot displace the
// entries of others. An entry belongs to a tenant. The scope of an entry is 0, or the number of the
// only WebSocket that can find the entry (`store: false`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "config/base/value.hpp"

namespace twill::net {

struct remembered_response {
  value_list messages; ///< input and output so far, without instructions
  /// False: the client forbade storing the response, so nothing that continues it may be stored.
  bool may_be_stored = true;
  // Set only by a warm-up (a request with `generate: false`): the request that continues it uses
  // these values if it has none itself.
  std::string instructions;
  value tools;
};

using remembered_ptr = std::shared_ptr<const remembered_response>;

class response_store {
public:
  explicit response_store(std::size_t max_bytes = 64u << 20, std::size_t max_entries = 4096)
      : max_bytes_(max_bytes), max_entries_(max_entries) {}

  void put(const std::string& id, const std::string& tenant, std::uint64_t scope,
           remembered_response response);
  remembered_ptr find(const std::string& id, const std::string& tenant, std::uint64_t scope) const;
  /// Removes an entry of this scope. An entry of another scope stays.
  void erase(const std::string& id, std::uint64_t scope);

  std::size_t held_bytes() const;

private:
  struct entry {
    std::string id;
    std::string tenant;
    std::uint64_t scope;
    std::size_t bytes;
    remembered_ptr response;
  };
  using entries = std::list<entry>;
  struct holding {
    entries by_age; ///< oldest first
    std::size_t bytes = 0;
  };

  void drop(entries::iterator which);
  double part_of(std::size_t bytes, std::size_t n_entries) const;
  bool make_room(const std::string& tenant, std::size_t bytes);

  const std::size_t max_bytes_;
  const std::size_t max_entries_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, holding> tenants_; ///< tenants that hold at least one entry
  std::unordered_map<std::string, entries::iterator> by_id_;
  std::size_t bytes_ = 0;
};

} // namespace twill::net
