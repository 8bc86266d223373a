// published_blocks: which KV blocks a model's readers are told of, from reports of what is there.
//
// Pure; one thread at a time (owned by kv_event_log). A report that changes nothing makes no event.
// Told are the blocks all of whose prefix some medium has, in the published scope: a reader could
// make nothing of others, and would take them for beginnings. A block that waits for its parent,
// and all behind it, are told when the parent is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "actors/kv/block_key.hpp"
#include "actors/kv/spilled_block.hpp"
#include "actors/port/kv_events.hpp"

namespace twill::actors {

class published_blocks {
public:
  /// `note` takes each event.
  explicit published_blocks(std::function<void(kv_event)> note) : note_(std::move(note)) {}

  /// Nothing is there; new prefixes are of this scope.
  void begin(std::uint64_t scope);
  /// New prefixes are of this scope; what was told stays.
  void use_scope(std::uint64_t scope) { scope_ = scope; }
  void stored(block_identity block, kv_medium medium);
  void removed(const block_key& block, kv_medium medium);
  void device_is_empty();

  /// `cleared`, and then all that is told of, parents before children.
  std::vector<kv_event> everything() const;

private:
  /// A block, or what blocks that are there go on behind. In a tree whose links stay valid, since
  /// a map does not move its entries.
  struct entry {
    std::shared_ptr<const kv_block> block; ///< null: it was never reported
    entry *parent = nullptr, *first_child = nullptr, *before = nullptr, *after = nullptr;
    block_key key;
    std::uint8_t media = 0; ///< a bit for each medium that has it
    bool begins = false;    ///< a prefix of the published scope
    bool told = false;
  };
  static std::uint8_t bit(kv_medium medium) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(medium));
  }

  entry& at(const block_key& key);
  void know(entry& e, block_identity block);
  void remove(entry& e, kv_medium medium);
  void tell(entry& first);
  void untell(entry& first);
  void forget(entry* e);

  const std::function<void(kv_event)> note_;
  std::uint64_t scope_ = 0;
  std::unordered_map<block_key, entry, block_key_hash> blocks_;
};

} // namespace twill::actors
