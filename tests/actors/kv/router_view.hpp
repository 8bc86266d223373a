// router_view: reconstructs a worker's blocks from its KV events alone, as a router does, and
// checks that each event is consistent with the events before it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "actors/kv/block_key.hpp"
#include "actors/kv/kv_event_log.hpp"
#include "tests/catch.hpp"

namespace twill::testing {

class router_view {
public:
  /// `key` names the blocks, all of which begin in `scope`.
  router_view(actors::hash_key key, std::uint64_t scope) : key_(key), scope_(scope) {}

  void take(actors::kv_event_log& from, bool everything = false) {
    const auto taken = from.take(everything);
    if (everything) REQUIRE(taken.anew);
    if (taken.anew) {
      REQUIRE_FALSE(taken.events.empty());
      REQUIRE(taken.events.front().kind == actors::kv_event_kind::cleared);
    }
    for (const auto& event : taken.events)
      apply(event);
  }

  bool has(const actors::block_key& block, actors::kv_medium medium) const {
    const auto found = media_.find(block);
    return found != media_.end() && found->second.contains(medium);
  }
  /// The blocks that are stored anywhere, with their media.
  const std::map<actors::block_key, std::set<actors::kv_medium>>& all() const { return media_; }
  const actors::kv_block& block(const actors::block_key& key) const { return *blocks_.at(key); }
  actors::block_key parent(const actors::block_key& key) const {
    const auto& block = *blocks_.at(key);
    return block.parent ? keys_.at(*block.parent) : actors::root_key(scope_);
  }

private:
  using kind = actors::kv_event_kind;

  void apply(const actors::kv_event& event) {
    if (event.kind == kind::cleared) {
      REQUIRE(event.block == nullptr);
      media_.clear();
      keys_.clear();
      return;
    }
    const auto& block = *event.block;
    auto parent = actors::root_key(scope_);
    if (block.parent) {
      REQUIRE(keys_.contains(*block.parent)); // parents are published first
      parent = keys_.at(*block.parent);
    }
    const auto key = actors::key_after(key_, parent, block.tokens);
    REQUIRE(key.first == block.name);
    if (event.kind == kind::stored) {
      REQUIRE(media_[key].insert(event.medium).second);
      keys_[block.name] = key;
      blocks_[key] = event.block;
    } else {
      REQUIRE(has(key, event.medium));
      media_[key].erase(event.medium);
      if (media_[key].empty()) media_.erase(key);
    }
  }

  actors::hash_key key_;
  std::uint64_t scope_;
  std::map<actors::block_key, std::set<actors::kv_medium>> media_;
  std::map<std::uint64_t, actors::block_key> keys_;
  std::map<actors::block_key, std::shared_ptr<const actors::kv_block>> blocks_;
};

} // namespace twill::testing
