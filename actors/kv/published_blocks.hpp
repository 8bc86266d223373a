// published_blocks: decides which KV blocks are announced to routers by events, from reports of
// where blocks are.
//
// An object has no side effects outside itself; one thread at a time may use it (owned by
// kv_event_log). A report that changes nothing makes no event. A block is published if its parent
// was published, or if it begins a prefix of the published cache scope (the one whose prefixes
// routers may know, see cache_scope.hpp). A router would take any other block for the beginning of
// a prompt, since it does not know the block's parent. A block whose parent is not published yet is
// published together with the parent. When a block has left every medium (device, host memory,
// disk), the blocks that follow it in the prefix stay published: a router counts no block after a
// missing one, and counts them again once the missing one is stored again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "actors/kv/block_key.hpp"
#include "actors/kv/spilled_block.hpp"
#include "actors/port/kv_events.hpp"

namespace twill::actors {

class published_blocks {
public:
  /// `note` is called with each event.
  explicit published_blocks(std::function<void(kv_event)> note) : note_(std::move(note)) {}

  /// Removes all blocks; from now on prefixes of `scope` are published, or none without a scope.
  void begin(std::optional<std::uint64_t> scope);
  void stored(block_identity block, kv_medium medium);
  void removed(const block_key& block, kv_medium medium);
  void device_is_empty();

  /// A snapshot as events: `cleared`, then all blocks that are in some medium (device, host memory,
  /// disk) and whose preceding blocks are too, parents before children. After these events every
  /// router has exactly these blocks.
  std::vector<kv_event> everything();

private:
  /// A block, or a placeholder for a parent that is not stored. Pointers between entries stay
  /// valid, since an unordered_map does not move its entries.
  struct entry {
    std::shared_ptr<const kv_block> block; ///< null: the block was never reported
    entry *parent = nullptr, *first_child = nullptr, *before = nullptr, *after = nullptr;
    block_key key;
    std::uint8_t media = 0; ///< a bit for each medium that has the block
    bool begins = false;    ///< the block begins a prefix of the published scope
    bool published = false;
  };
  static std::uint8_t bit(kv_medium medium) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(medium));
  }

  entry& at(const block_key& key);
  void know(entry& e, block_identity block);
  void remove(entry& e, kv_medium medium);
  void publish(entry& first);
  void forget(entry* e);

  const std::function<void(kv_event)> note_;
  std::optional<std::uint64_t> scope_;
  std::unordered_map<block_key, entry, block_key_hash> blocks_;
};

} // namespace twill::actors
