// live_requests: the live requests, for the port (cancel, pause) and the supervisor (deadlines,
// drain, abort).
//
// Thread safety: every function takes the one mutex. Handles are copied out, so that messages are
// sent without it. Invariant: a request is in the table from before its session starts until it is
// over.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/session/session_core.hpp"

namespace twill::actors {

class live_requests {
public:
  struct entry {
    session_actor session;
    std::shared_ptr<request_control> control;
    std::optional<steady_clock::time_point> deadline;
  };

  struct inserted {
    bool full = false; ///< there are `limit` live requests already; refuse this one
    bool start_watching =
        false; ///< this is the first deadline; the supervisor must watch the clock
  };
  inserted insert(request_id id, entry added, std::size_t limit);
  void erase(request_id id);
  std::optional<entry> find(request_id id) const;
  std::vector<session_actor> all() const;
  /// From now on no event of any request is delivered, except one that is being delivered already.
  void silence_all();
  void clear();

  /// The sessions whose deadline has passed; each is reported once.
  std::vector<session_actor> take_expired(steady_clock::time_point now);
  /// True when deadlines are left; otherwise the next insert() asks for watching again.
  bool keep_watching();

  /// `drained` is called once the table is empty, by erase() or check_drained().
  void drain(std::function<void()> drained);
  bool draining() const;
  void check_drained();

private:
  using deadline_map = std::multimap<steady_clock::time_point, request_id>;

  mutable std::mutex mutex_;
  std::unordered_map<request_id, entry> entries_;
  deadline_map deadlines_;
  std::function<void()> drained_;
  bool draining_ = false;
  bool watching_ = false;
};

} // namespace twill::actors
