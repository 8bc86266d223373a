// request_router: takes the requests of a pool in, sends each to the engine of its model, and ends
// those that no engine serves.
//
// A request goes straight to its model's engine if the model is awake. Otherwise the router holds
// it until pool_state orders to send it or to refuse it, or until the request is cancelled or its
// time is over. No callback of a request runs inside a call of the engine_port: requests to send
// and requests to refuse are collected as work, which the pool's dispatcher does without holding
// the mutex.
//
// Threads: the pool's mutex guards the router. A function whose comment says so locks this mutex
// itself; the caller of any other function holds it. The router calls `wake` when there may be work
// for the dispatcher. The models, the state and the mutex must outlive the router, and no engine
// may call back once the router is gone.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/pool/held_request.hpp"
#include "actors/pool/held_requests.hpp"
#include "actors/pool/pool_state.hpp"
#include "actors/pool/pooled_models.hpp"
#include "config/options.hpp"

namespace twill::actors {

class request_router {
public:
  request_router(std::mutex& mutex, pool_state& state, const pooled_models& models,
                 std::function<void()> wake);

  const held_requests& requests() const { return requests_; }
  bool draining() const { return draining_; }

  /// Holds a new request, or refuses it. Returns the engine to which it must be sent now, or null.
  /// All orders of pool_state must have been carried out before.
  engine_port* take_in(const held_request_ptr& held, const config::options& options);
  /// Sends a request to its engine. The request counts as under way, so the engine stays meanwhile.
  /// Locks the mutex.
  void send(const held_request_ptr& held, engine_port& to);
  /// Ends a request that cannot be sent because memory is too short: its client is informed, and
  /// the request is no longer counted. `held` is null if memory was too short even to create it;
  /// then the client is only informed. Locks the mutex.
  void give_up(const held_request_ptr& held, const event_callback& on_event);

  /// Ends a request that its client cancels. The orders of the state must have been applied.
  void cancel(request_id id);
  void set_paused(request_id id, bool paused);
  /// Refuses a waiting request. The state must not have ordered to send it.
  void end_waiting(const held_request_ptr& held, request_error why);
  /// For a shutdown: refuses a waiting request, and marks one that is just being sent, which send()
  /// then aborts. The caller must have carried out all orders of pool_state (next_order()).
  void abort(const held_request_ptr& held);
  /// No request gets an event from now on.
  void stop_events();
  /// Refuses new requests from now on. `drained` becomes work once no request is left.
  void drain(std::function<void()> drained);

  // Orders of the state.
  void send_waiting(std::size_t model);
  void refuse_waiting(std::size_t model);

  /// Work that is done without holding the mutex.
  struct work {
    std::vector<held_request_ptr> sends, refusals;
    std::function<void()> drained;
    bool empty() const { return sends.empty() && refusals.empty() && !drained; }
  };
  work take_work();
  /// Locks the mutex.
  void do_work(work& todo);

  /// Adds the requests of one model to the ledger, in lines that begin with `prefix`.
  void account_model(std::size_t m, const std::string& prefix, ledger& to) const;

private:
  void refuse(const held_request_ptr& held, request_error why);
  request_error not_ready(std::size_t m) const;
  void pass_on(const held_request_ptr& held, event e);
  void forget(const held_request& over);

  std::mutex& mutex_;
  pool_state& state_;
  const pooled_models& models_;
  const std::function<void()> wake_;
  held_requests requests_;
  std::vector<held_request_ptr> sends_, refused_; ///< requests for the dispatcher
  std::function<void()> drained_;
  bool draining_ = false;
};

/// The error of a request that comes, or still waits, while the server is shutting down.
request_error shutting_down();

} // namespace twill::actors
