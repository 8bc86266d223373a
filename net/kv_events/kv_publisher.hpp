// kv_publisher: publishes the events of one model's KV blocks on a ZeroMQ socket, with a thread of
// its own.
//
// A message is [topic, number, payload] (see kv_wire.hpp); the numbers begin with 0. The
// publisher does two things that vLLM's publisher does not:
// - When a subscriber connects or reconnects, all subscribers get a snapshot: AllBlocksCleared and
//   then every block. So a router that starts later, or that reconnects to a restarted daemon, has
//   the complete state of the cache. There is no replay socket.
// - A connected subscriber misses no message. While the queue of one subscriber is full, the others
//   wait for it, but at most three seconds in thirty. Then the socket is closed and created again;
//   subscribers that still read will reconnect and get a snapshot.
// A number is skipped if the engine's log has dropped events, or when the socket is created again.
//
// Memory: the queue of a subscriber has at most most_queued messages with payloads of at most
// longest_kv_payload. The number of subscribers and of their topics is not limited, so only routers
// should be able to reach the address.
#pragma once

#include <memory>
#include <string>

#include "actors/port/kv_events.hpp"
#include "config/options.hpp"

namespace twill::net {

class kv_publisher {
public:
  /// Maximum number of messages that wait for one subscriber; with their headers they take less
  /// than 64 MiB.
  static constexpr int most_queued = 1000;

  virtual ~kv_publisher() = default;
  /// Returns the bound address, with the port that the system chose if port 0 was configured.
  virtual std::string endpoint() const = 0;

  /// Binds the address before it returns. Throws std::runtime_error that names the configuration
  /// key and the reason if the address cannot be bound, and other exceptions derived from
  /// std::exception for other failures.
  static std::unique_ptr<kv_publisher> bind(const config::kv_event_options& options,
                                            std::shared_ptr<actors::kv_event_source> source);
};

} // namespace twill::net
