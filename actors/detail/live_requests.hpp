// live_requests: the table of live requests, used by the engine_port (cancel, pause) and the
// supervisor actor (deadlines, drain, abort).
//
// Thread safety: every function locks the one mutex. Handles of sessions are copied, so that
// messages are sent without the lock. Invariant: a request is in the table from before its session
// starts until it is over. The table bounds the number of requests, of paused requests, and the
// bytes of prompts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/detail/drain_rate.hpp"
#include "actors/interfaces.hpp"
#include "actors/session/session_core.hpp"

namespace twill::actors {

class live_requests {
public:
  struct entry {
    session_actor session;
    std::shared_ptr<request_control> control;
    std::optional<steady_clock::time_point> deadline;
    std::optional<steady_clock::time_point> queue_deadline; ///< until when it may wait in the queue
    std::string client;
    std::size_t most_of_client = 0; ///< the most not paused requests of its client; 0: no limit
    std::int64_t bytes = 0;         ///< size of its prompt
    bool paused = false;            ///< set by pause()
  };
  /// A deadline that has passed.
  struct expired {
    request_id id = 0;
    session_actor session;
    bool waited = false; ///< true: the deadline is the queue_deadline
  };

  struct limits {
    std::size_t live = 0;   ///< the most requests that are not paused
    std::size_t paused = 0; ///< the most paused requests
    std::int64_t bytes = 0; ///< the most bytes of all prompts; paused requests may take a quarter
  };
  explicit live_requests(const limits& bounds) : limits_(bounds) {}

  struct inserted {
    const char* refused = nullptr; ///< why this request must be refused, or null
    bool start_watching =
        false; ///< this is the first deadline; the supervisor must watch the clock
  };
  /// Adds a request or refuses it. A client with a name may hold at most seven times as many places
  /// of the table as are still free, so that other clients are admitted too.
  inserted insert(request_id id, entry added, steady_clock::time_point now);
  /// Marks the request as paused. Paused requests do not count against the bound of live requests,
  /// and have a bound of their own. If it is exceeded, returns the session that must end: the one
  /// that was paused last among those of the client with the most paused requests.
  std::optional<session_actor> pause(request_id id);
  void resume(request_id id);
  /// `was_queued`: the request's end frees a place in the queue or the running set.
  void erase(request_id id, bool was_queued, steady_clock::time_point now);
  /// The seconds after which a refused request of this client should be retried. If the client has
  /// a limit of its own, the time follows the rate at which its requests leave; otherwise the rate
  /// of all requests.
  std::int32_t retry_after_s(const std::string& client, steady_clock::time_point now);
  std::optional<entry> find(request_id id) const;
  std::vector<session_actor> all() const;
  /// From now on no event of any request is delivered, except one that is being delivered already.
  void silence_all();
  void clear();

  /// The deadlines that have passed; each is reported once.
  std::vector<expired> take_expired(steady_clock::time_point now);
  /// True when deadlines are left; otherwise the next insert() asks for watching again.
  bool keep_watching();

  /// `drained` is called once the table is empty, by erase() or check_drained().
  void drain(std::function<void()> drained);
  bool draining() const;
  /// Adds the requests as holders, and the counters, to the ledger.
  void account(ledger& to) const;
  void check_drained();

private:
  struct due {
    request_id id = 0;
    bool waited = false;
  };
  void set_paused(request_id id, entry& e, bool paused);
  void add_deadline(std::optional<steady_clock::time_point> at, due what);
  void remove_deadline(std::optional<steady_clock::time_point> at, request_id id);
  std::optional<session_actor> find_surplus();

  using deadline_map = std::multimap<steady_clock::time_point, due>;

  const limits limits_;
  mutable std::mutex mutex_;
  std::unordered_map<request_id, entry> entries_;
  std::unordered_map<std::string, std::size_t> live_of_;  ///< requests by client
  std::map<std::string, std::set<request_id>> paused_of_; ///< paused requests by client
  std::size_t n_paused_ = 0;
  std::int64_t bytes_ = 0, paused_bytes_ = 0;
  deadline_map deadlines_;
  drain_rate leaving_;
  std::unordered_map<std::string, drain_rate> leaving_of_; ///< for each client that has a limit
  std::function<void()> drained_;
  bool draining_ = false;
  bool watching_ = false;
};

} // namespace twill::actors
