// published_blocks: which KV blocks a model's readers are told of, from reports of what is there.
//
// Pure; one thread at a time (owned by kv_event_log). A report that changes nothing makes no event.
// Told is a block whose parent was told, or that begins a prefix of the published scope: a reader
// would take any other for a beginning. A block that waits for its parent is told with it. Where a
// block is gone everywhere, those behind it are left as they are: a reader credits no prefix beyond
// the gap, and they count again once it is closed.
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
  /// `note` takes each event.
  explicit published_blocks(std::function<void(kv_event)> note) : note_(std::move(note)) {}

  /// Nothing is there; from now on prefixes of this scope are told, or none.
  void begin(std::optional<std::uint64_t> scope);
  void stored(block_identity block, kv_medium medium);
  void removed(const block_key& block, kv_medium medium);
  void device_is_empty();

  /// `cleared`, and then all blocks whose whole prefix is somewhere, parents before children; every
  /// reader knows these alone then.
  std::vector<kv_event> everything();

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
  void forget(entry* e);

  const std::function<void(kv_event)> note_;
  std::optional<std::uint64_t> scope_;
  std::unordered_map<block_key, entry, block_key_hash> blocks_;
};

} // namespace twill::actors
