// response_store: conversations that `previous_response_id` may continue and that are no stored
// responses: warm-ups, and what single WebSockets remember of `store: false`. Bounded in bytes and
// number.
//
// Thread safety: every function may be called from any thread (one mutex, short sections).
// Invariant: held bytes <= max_bytes. For room the tenant that holds most, the new entry included,
// loses its oldest entries, so that no tenant's flood makes the server forget what others said. An
// entry belongs to a tenant, and with a scope > 0 to one WebSocket alone (`store: false`): nobody
// else finds it.
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
  /// False: whoever asked wants it stored nowhere, and so nothing that continues it.
  bool may_be_stored = true;
  // Set by a warm-up (`generate: false`) only: the next turn takes them when it brings none.
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
  /// Forgets an entry of this scope; entries of other scopes stay.
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
  std::unordered_map<std::string, holding> tenants_; ///< those that hold something
  std::unordered_map<std::string, entries::iterator> by_id_;
  std::size_t bytes_ = 0;
};

} // namespace twill::net
