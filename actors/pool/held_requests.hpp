// held_requests: the requests that a pool knows of, from submit() until they are over, and the
// bounds and time-outs of those that wait for their model.
//
// What waits for a model is bounded as a queue is: `scheduler.max_queued` for each model,
// `scheduler.max_prompts` over all models, and `tenants.max_queued`.
//
// Thread safety: none; the pool's mutex guards it. A function that throws has changed nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/pool/held_request.hpp"
#include "config/options.hpp"

namespace twill::actors {

class held_requests {
public:
  using time = std::chrono::steady_clock::time_point;

  void add(held_request_ptr held);
  /// It must wait no more.
  void remove(const held_request& held);
  held_request_ptr find(request_id id) const; ///< null when there is none
  bool empty() const { return all_.empty(); }
  const std::map<request_id, held_request_ptr>& all() const { return all_; }

  /// Why a request may not wait for its model, for which so many wait; nothing when it may.
  std::optional<request_error> queue_full(const held_request& held, std::size_t n_waiting,
                                          const config::options& options) const;
  /// Its place is `waiting` from now on, and its time counts.
  void begin_wait(held_request& held, const config::options& options, time now);
  /// It waits no more; its place is the caller's to set.
  void end_wait(const held_request& held);

  /// Those whose time is over while they wait.
  std::vector<held_request_ptr> late(time now) const;
  /// When the next of those that wait is late.
  std::optional<time> next_late(time now) const;
  /// Its requests exist, and what it counts of those that wait.
  void account(ledger& to) const;

private:
  std::map<request_id, held_request_ptr> all_;
  std::map<std::string, std::size_t> waiting_of_; ///< by client
  std::int64_t waiting_bytes_ = 0;
};

/// What a ledger calls a request of the pool; its engine has another number for it.
std::string pool_holder_name(request_id id);

/// What the client of a request is told that waited for too long for the model of this id.
request_error waited_too_long(const held_request& held, const std::string& model,
                              held_requests::time now);

} // namespace twill::actors
