// live_requests: the live requests, for the port (cancel, pause) and the supervisor (deadlines,
// drain, abort).
//
// Thread safety: every function takes the one mutex. Handles are copied out, so that messages are
// sent without it. Invariant: a request is in the table from before its session starts until it is
// over. Requests, paused requests and the bytes of prompts are bounded here.
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

#include "actors/interfaces.hpp"
#include "actors/session/session_core.hpp"

namespace twill::actors {

class live_requests {
public:
  struct entry {
    session_actor session;
    std::shared_ptr<request_control> control;
    std::optional<steady_clock::time_point> deadline;
    std::string client;
    std::int64_t bytes = 0; ///< of its prompt
    bool paused = false;    ///< set by pause()
  };

  struct limits {
    std::size_t live = 0;   ///< requests that are not paused
    std::size_t paused = 0; ///< requests that are
    std::int64_t bytes = 0; ///< of all prompts; paused requests may take a quarter
  };
  explicit live_requests(const limits& bounds) : limits_(bounds) {}

  struct inserted {
    const char* refused = nullptr; ///< why this request must be refused, or null
    bool start_watching =
        false; ///< this is the first deadline; the supervisor must watch the clock
  };
  /// A named client that holds much is refused while others still get in: it may hold seven times
  /// the places that are free.
  inserted insert(request_id id, entry added);
  /// Pauses do not count at the door, so they have a bound of their own. Returns the session that
  /// must end because of it: the latest of the client that has the most paused requests.
  std::optional<session_actor> pause(request_id id);
  void resume(request_id id);
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
  void set_paused(request_id id, entry& e, bool paused);
  std::optional<session_actor> find_surplus();

  using deadline_map = std::multimap<steady_clock::time_point, request_id>;

  const limits limits_;
  mutable std::mutex mutex_;
  std::unordered_map<request_id, entry> entries_;
  std::unordered_map<std::string, std::size_t> live_of_;  ///< requests by client
  std::map<std::string, std::set<request_id>> paused_of_; ///< paused requests by client
  std::size_t n_paused_ = 0;
  std::int64_t bytes_ = 0, paused_bytes_ = 0;
  deadline_map deadlines_;
  std::function<void()> drained_;
  bool draining_ = false;
  bool watching_ = false;
};

} // namespace twill::actors
