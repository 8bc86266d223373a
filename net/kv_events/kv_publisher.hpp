// kv_publisher: tells routers of one model's KV blocks, on a ZeroMQ socket and a thread of its own.
//
// A message is [topic, number, payload] (kv_wire.hpp), the numbers begin with 0. Beyond what vLLM's
// publisher does:
// - Who subscribes is told all that is there, after an AllBlocksCleared that every subscriber gets.
//   So a router that began later, or that comes back to a daemon that was started anew, knows the
//   cache without asking for a replay (which is not offered).
// - A subscriber misses no message while it is connected. Where the queue of one is full, the
// others
//   wait for it, three seconds in thirty at most; then the socket is made anew, and whoever reads
//   comes back and is told everything.
// Where events were lost before that, a number is left out.
//
// Memory: the queue of a subscriber has at most most_queued messages of longest_kv_payload. Neither
// subscribers nor their topics are counted: only routers should reach the address.
#pragma once

#include <memory>
#include <string>

#include "actors/port/kv_events.hpp"
#include "config/options.hpp"

namespace twill::net {

class kv_publisher {
public:
  /// Messages that wait for one subscriber: with their heads below 64 MiB.
  static constexpr int most_queued = 1000;

  virtual ~kv_publisher() = default;
  /// What was bound: with the port that the system chose for port 0.
  virtual std::string endpoint() const = 0;

  /// Binds at once; throws std::exception, where the address cannot be bound std::runtime_error
  /// that names the key and the reason.
  static std::unique_ptr<kv_publisher> bind(const config::kv_event_options& options,
                                            std::shared_ptr<actors::kv_event_source> source);
};

} // namespace twill::net
