// held_requests: the requests in a pool, from submit() until they are over, and the bounds and
// timeouts of the requests that wait for their model.
//
// The requests that wait for a model are bounded as a queue is: by `scheduler.max_queued` for each
// model, by `scheduler.max_prompts` over all models, and by `tenants.max_queued`.
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
  /// Removes a request, which must not be waiting.
  void remove(const held_request& held);
  held_request_ptr find(request_id id) const; ///< null if there is none
  bool empty() const { return all_.empty(); }
  const std::map<request_id, held_request_ptr>& all() const { return all_; }

  /// Why a request may not wait for its model, for which `n_waiting` requests wait already; nullopt
  /// if it may.
  std::optional<request_error> queue_full(const held_request& held, std::size_t n_waiting,
                                          const config::options& options) const;
  /// Marks the request as waiting and sets its deadlines.
  void begin_wait(held_request& held, const config::options& options, time now);
  /// Removes the request from the waiting ones; the caller sets its new place.
  void end_wait(const held_request& held);

  /// The waiting requests whose deadline has passed.
  std::vector<held_request_ptr> late(time now) const;
  /// The earliest deadline of the waiting requests.
  std::optional<time> next_late(time now) const;
  /// Adds the requests as holders, and the counters of waiting requests, to the ledger.
  void account(ledger& to) const;

private:
  std::map<request_id, held_request_ptr> all_;
  std::map<std::string, std::size_t> waiting_of_; ///< by client
  std::int64_t waiting_bytes_ = 0;
};

/// The name of a pool's request in a ledger; the request has another id in its model's engine.
std::string pool_holder_name(request_id id);

/// The error of a request that waited too long for the model with this id.
request_error waited_too_long(const held_request& held, const std::string& model,
                              held_requests::time now);

} // namespace twill::actors
