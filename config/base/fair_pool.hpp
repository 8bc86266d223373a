// fair_pool: threads for work on texts (JSON, templates, tokenizing) that may take long, so that it
// holds up neither sockets nor steps. Clients take turns by bytes, so that none waits for another's
// heap of work.
//
// Thread safety: any thread may call any function; tasks run on the pool's threads, which other
// threads of the process outrank by a few nice levels. A task must not throw. What waits is bounded
// in bytes and in time. The destructor waits for running tasks; tasks that wait are destroyed
// without being run.
//
// Invariant: a client's turn comes by its virtual time, the bytes that it was served. A new client
// begins at the virtual time of the client served last, so that nobody can save up turns; a client
// that is ahead of that is remembered until the others have caught up.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace twill {

class fair_pool {
public:
  using clock = std::chrono::steady_clock;

  struct limits {
    std::size_t threads = 1;
    std::int64_t waiting_bytes = std::int64_t{64} << 20; ///< of tasks that have not begun
    clock::duration longest_wait = std::chrono::seconds(30);
  };
  struct task {
    std::string client;     ///< whose turn it takes
    std::int64_t bytes = 0; ///< of the text that it works on
    /// Asked just before the task would begin; true: nobody wants it any more.
    std::function<bool()> is_unwanted;
    std::function<void()> run;
    /// Called instead of run() when the task has waited for longer than `longest_wait`.
    std::function<void()> expire;
  };

  explicit fair_pool(const limits& bounds);
  ~fair_pool();
  fair_pool(const fair_pool&) = delete;
  fair_pool& operator=(const fair_pool&) = delete;

  /// False: too many bytes wait, and the task was not taken. One client alone is given half of the
  /// bound; any client that has nothing waiting is given all that is left.
  bool add(task added);
  std::int64_t waiting_bytes() const;

private:
  struct waiting_task {
    task what;
    clock::time_point added;
  };
  struct client {
    std::deque<waiting_task> tasks;
    std::int64_t bytes = 0;  ///< of its waiting tasks
    std::int64_t served = 0; ///< its virtual time
  };
  using turn = std::pair<std::int64_t, std::string>; ///< virtual time and client

  void work();
  waiting_task take_next();

  limits limits_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<std::string, client> clients_;
  std::set<turn> turns_;   ///< of clients with waiting tasks
  std::set<turn> resting_; ///< of all other clients
  std::int64_t virtual_time_ = 0;
  std::int64_t waiting_bytes_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

} // namespace twill
