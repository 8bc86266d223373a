// allocator_waits: measures how long a batcher's requests to the KV allocator are unanswered, from
// outside of both actors. A wait begins when the batcher enqueues the request, and ends when the
// batcher is about to handle the kv_grant that answers it.
//
// This header includes CAF. Only one object may exist at a time, because it installs the process's
// message_probe; it must outlive the actors. The functions may be called on any thread.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "actors/interfaces.hpp"

namespace twill::bench {

class allocator_waits {
public:
  using time_point = std::chrono::steady_clock::time_point;

  allocator_waits();
  ~allocator_waits();
  allocator_waits(const allocator_waits&) = delete;
  allocator_waits& operator=(const allocator_waits&) = delete;

  /// The address that the batcher must get in place of the allocator's. What is sent to it is
  /// enqueued at the allocator by the sender's thread, so no thread switch is added.
  actors::kv_allocator_actor in_front_of(caf::actor_system& system,
                                         const actors::kv_allocator_actor& allocator);

  /// The sum in seconds of the waits that have ended since the last call, without what lies outside
  /// [from, until].
  double take(time_point from, time_point until);

  /// The batcher sends a request to the allocator now.
  void asked();
  /// The batcher begins to handle a kv_grant now.
  void granted();

private:
  std::mutex mutex_;
  std::optional<time_point> asked_at_; ///< the request without an answer, if there is one
  std::vector<std::pair<time_point, time_point>> ended_;
};

} // namespace twill::bench
