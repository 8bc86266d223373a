// kv_events: which KV blocks the cache of a model has, for routers that send a prompt to where its
// beginning is cached. Plain structs, as everything that net/ sees of the engine.
//
// The engine notes what happens in order; one reader takes it. A reader that is too slow loses
// nothing but the way: it gets what is there now instead.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace twill::actors {

enum class kv_medium : std::uint8_t { device, host, disk };

/// A full block: `tokens` after those of the block `parent` and of all before it.
struct kv_block {
  std::uint64_t name = 0;              ///< a keyed hash of all tokens up to its end
  std::optional<std::uint64_t> parent; ///< none: it begins a prompt
  std::vector<std::int32_t> tokens;    // (block_tokens)
};

enum class kv_event_kind : std::uint8_t {
  stored,  ///< `medium` has `block` now; its parent was stored before
  removed, ///< `medium` has it no more
  cleared  ///< no medium has any block
};

struct kv_event {
  kv_event_kind kind = kv_event_kind::cleared;
  kv_medium medium = kv_medium::device;
  std::shared_ptr<const kv_block> block; ///< null for `cleared`
};

/// What happened since the last call.
struct kv_events {
  std::vector<kv_event> events;
  /// Too many waited, or all was asked for: these begin with `cleared`, and what follows is all
  /// that is there.
  bool anew = false;
  bool lost = false; ///< some that came before these were dropped
};

class kv_event_source {
public:
  virtual ~kv_event_source() = default;
  /// Any thread, one at a time; does not wait for events. With `everything` the answer begins anew.
  virtual kv_events take(bool everything) = 0;
  /// `waker` is called once there may be something to take, and not again before it was taken: on
  /// any thread, with locks held, so it must be quick and must not call back. An empty one ends
  /// this; no call is under way any more then.
  virtual void on_events(std::function<void()> waker) = 0;
};

/// The source of one model.
struct kv_event_feed {
  std::string key; ///< of `[models.KEY]`; empty for `[model]`
  std::shared_ptr<kv_event_source> source;
};

} // namespace twill::actors
