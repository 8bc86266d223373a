// kv_publisher: publishes the events of one model's KV blocks, on a ZeroMQ socket and a thread of
// its own.
//
// A message is [topic, number, payload] (kv_wire.hpp); the numbers begin with 0. Two things go
// beyond vLLM's publisher:
// - When a subscriber connects or reconnects, all subscribers get a snapshot: AllBlocksCleared and
//   then every block. So a router that begins later, or that reconnects to a restarted daemon,
//   knows the cache. There is no replay socket.
// - A subscriber misses no message while it is connected. While the queue of one is full the others
//   wait for it, three seconds in thirty at most. Then the socket is made anew; subscribers that
//   read reconnect and get a snapshot.
// A number is skipped where the engine's log has dropped events.
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
