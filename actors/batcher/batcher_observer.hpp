// batcher_observer: is notified of every input and decision of a batcher.
//
// This class itself ignores every notification, and serves batchers that are not recorded. The
// derived class scheduler_trace (actors/trace/scheduler_trace.hpp) writes a record of each. One
// thread at a time (the batcher's). An argument is valid during the call only. The batcher computes
// nothing just to notify: it passes what it has anyway, and the class that records computes
// whatever else a record needs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "actors/batcher/batcher_limits.hpp"
#include "actors/messages.hpp"

namespace twill::actors {

class batcher_observer {
public:
  virtual ~batcher_observer() = default;

  // Inputs of the batcher.
  virtual void executor_ready(std::uint64_t /*generation*/, const batcher_limits&) {}
  /// A prompt, before it is refused or queued.
  virtual void arrived(const submit_prompt&) {}
  virtual void choice_finished(request_id, std::int32_t /*choice*/) {}
  virtual void released(request_id) {}
  virtual void paused(request_id) {}
  virtual void resumed(request_id) {}
  virtual void waited_too_long(request_id) {}
  virtual void fetched(std::uint64_t /*fetch_id*/, std::size_t /*n_blocks*/,
                       steady_clock::time_point /*now*/) {}
  /// The allocator's answer to the batcher's last request.
  virtual void granted(const kv_grant&, steady_clock::time_point /*now*/) {}
  /// The result of `plan`, whose rows are not applied yet.
  virtual void step_done(const step_plan& /*plan*/, const step_result&,
                         steady_clock::time_point /*now*/) {}
  virtual void step_failed(std::uint64_t /*generation*/) {}
  /// A step of an earlier generation came back: nothing follows except another attempt to plan.
  virtual void ignored_step() {}

  // Decisions of the batcher.
  /// The prompt that arrived last is queued; its choices (the outputs that it asks for) are the
  /// sequences with the ids from `first` on.
  virtual void queued(sequence_id /*first*/, const submit_prompt&) {}
  virtual void planned(const step_plan&, std::int32_t /*preempted*/) {}
  virtual void ended(request_id, const request_error& /*why*/) {}
  /// A sequence has left for good.
  virtual void forgotten(sequence_id) {}

  /// No step is outstanding, and none can be planned before the next message.
  virtual void rested() {}

  /// An observer that ignores every notification. It has no state, so any number of batchers on any
  /// threads may share it.
  static batcher_observer& none() {
    static batcher_observer ignores_all;
    return ignores_all;
  }
};

} // namespace twill::actors
