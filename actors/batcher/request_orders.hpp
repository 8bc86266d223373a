// request_orders: applies the orders of sessions and of the supervisor to the requests of a
// batcher, and ends requests.
//
// One thread at a time (the batcher's). A request is in two places: `sequence_groups` has its
// tokens, and `scheduler` has the lengths of its sequences. Each function changes both, reports the
// order to the observer, and answers the session. Whatever ends a request, its sequences leave the
// scheduler in the same way, and keep their blocks until no outstanding step has a row of them. A
// row is the part of a step that belongs to one sequence. All four objects that are given to the
// constructor must outlive this one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "actors/batcher/batcher_limits.hpp"
#include "actors/batcher/batcher_observer.hpp"
#include "actors/batcher/sequence_groups.hpp"
#include "actors/batcher/session_sink.hpp"
#include "actors/messages.hpp"
#include "actors/scheduling/scheduler.hpp"

namespace twill::actors {

class request_orders {
public:
  request_orders(sequence_groups& groups, scheduler& sequences, session_sink& sessions,
                 batcher_observer& observer)
      : groups_(groups), scheduler_(sequences), sessions_(sessions), observer_(observer) {}

  /// Queues the request, or refuses it if these limits leave no room for it.
  void submit(const submit_prompt& prompt, const batcher_limits& limits);
  void finish_choice(request_id request, std::int32_t choice);
  void release(request_id request);
  void pause(request_id request);
  void resume(request_id request);
  /// Ends the request with errc::queue_timed_out, unless it was scheduled.
  void waited_too_long(request_id request);

  /// Ends the request with an error.
  void fail(request_id request, const request_error& why);
  /// Must be called when a step has failed. Its requests fail too, but a request that has drawn no
  /// token and had no failed step before is computed again. With `device_is_lost` all requests of
  /// the step fail.
  void fail_step(const step_plan& failed, const std::string& detail, bool device_is_lost);
  /// Shortens or fails the requests that no longer fit, after a load that left less memory for the
  /// KV cache. A request is shortened if its client set no output limit; otherwise it fails.
  void refit(const batcher_limits& limits);

  /// Returns the sequences that have ended since the last call although an outstanding step still
  /// computes tokens of them.
  std::vector<sequence_id> take_departed() { return std::exchange(departed_, {}); }
  /// No outstanding step will come back.
  void forget_departed() { departed_.clear(); }

private:
  void refuse(request_id request, const request_error& why);
  void release_choices(request_id request);
  void leave(sequence_id id);
  bool may_compute_again(request_id request);
  template <class F>
  void for_each_choice(request_id request, F&& apply);

  sequence_groups& groups_;
  scheduler& scheduler_;
  session_sink& sessions_;
  batcher_observer& observer_;
  std::vector<sequence_id> departed_; ///< sequences that take_departed() returns next
};

} // namespace twill::actors
