// kv_events: reports which KV blocks a model's cache holds, for routers that send a prompt to the
// server which has its beginning cached. Plain structs, as all that net/ uses of the engine.
//
// The engine records events in their order, and a single reader takes them. If the reader is too
// slow, events are dropped, and the reader gets the current state of the cache in their place.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace twill::actors {

enum class kv_medium : std::uint8_t { device, host, disk };

/// A full KV block. Its `tokens` follow those of the block `parent` and of all blocks before that.
struct kv_block {
  /// a keyed hash of all tokens from the beginning of the prompt to the end of this block
  std::uint64_t name = 0;
  std::optional<std::uint64_t> parent; ///< none: the block is the first of a prompt
  std::vector<std::int32_t> tokens;    // (block_tokens)
};

enum class kv_event_kind : std::uint8_t {
  stored,  ///< `medium` has `block` from now on; its parent was stored before
  removed, ///< `medium` no longer has `block`
  cleared  ///< no medium has any block
};

struct kv_event {
  kv_event_kind kind = kv_event_kind::cleared;
  kv_medium medium = kv_medium::device;
  std::shared_ptr<const kv_block> block; ///< null for `cleared`
};

/// The events since the last call of take().
struct kv_events {
  std::vector<kv_event> events;
  /// Whether the list of events begins anew: its first event is `cleared`, and the events after
  /// that one are the whole current state. This happens when too many events waited, or when
  /// `everything` was asked for.
  bool anew = false;
  bool lost = false; ///< earlier events were dropped
};

class kv_event_source {
public:
  virtual ~kv_event_source() = default;
  /// Takes the events that wait, without waiting for any. May be called on any thread, by one
  /// thread at a time. With `everything`, the answer is the whole current state (see
  /// kv_events::anew).
  virtual kv_events take(bool everything) = 0;
  /// Sets the callback that reports new events. `waker` is called when there may be something to
  /// take, and then not again before the next take(). The call may come on any thread and with
  /// locks held, so `waker` must be quick and must not call back. An empty `waker` unsets the
  /// callback; no call is under way any more once on_events() has returned.
  virtual void on_events(std::function<void()> waker) = 0;
};

/// The event source of one model.
struct kv_event_feed {
  std::string key; ///< KEY of `[models.KEY]`; empty for `[model]`
  std::shared_ptr<kv_event_source> source;
};

} // namespace twill::actors
