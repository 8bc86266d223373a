// fair_pool: a thread pool for work on texts (JSON, templates, tokenizing). Such work may take
// long, and on these threads it delays neither sockets nor the engine's forward passes. Clients
// take turns by bytes, so that no client waits for all the work that another one has queued.
//
// Thread safety: any thread may call any function. Tasks run on the pool's threads, whose priority
// is a few nice levels below that of the process's other threads. A task must not throw. Waiting
// tasks are bounded in bytes and in time. The destructor waits for running tasks; waiting tasks are
// destroyed without being run.
//
// Invariant: clients are served in the order of their virtual times; the virtual time of a client
// is the number of bytes that were served for it. A new client begins at the virtual time of the
// client served last, so that no client can save up turns. A client without tasks is remembered as
// long as its virtual time is ahead of that time.
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
    /// the most bytes of tasks that have not begun
    std::int64_t waiting_bytes = std::int64_t{64} << 20;
    clock::duration longest_wait = std::chrono::seconds(30);
  };
  struct task {
    std::string client;     ///< the client whose turn the task uses
    std::int64_t bytes = 0; ///< size of the task's text
    /// Called just before the task would begin; true means that the result is no longer wanted and
    /// the task is dropped.
    std::function<bool()> is_unwanted;
    std::function<void()> run;
    /// Called instead of run() when the task has waited for longer than `longest_wait`.
    std::function<void()> expire;
  };

  explicit fair_pool(const limits& bounds);
  ~fair_pool();
  fair_pool(const fair_pool&) = delete;
  fair_pool& operator=(const fair_pool&) = delete;

  /// Returns false, and does not take the task, if more than `limits::waiting_bytes` bytes would
  /// wait. A client without waiting tasks may use all bytes that are left. A client with waiting
  /// tasks is also refused if its waiting bytes, with the new task, would exceed the bytes then
  /// left for all clients. So by several tasks a client never takes more than half of
  /// `limits::waiting_bytes`.
  bool add(task added);
  std::int64_t waiting_bytes() const;

private:
  struct waiting_task {
    task what;
    clock::time_point added;
  };
  struct client {
    std::deque<waiting_task> tasks;
    std::int64_t bytes = 0;  ///< bytes of its waiting tasks
    std::int64_t served = 0; ///< its virtual time
  };
  using turn = std::pair<std::int64_t, std::string>; ///< virtual time and client

  void work();
  waiting_task take_next();

  limits limits_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<std::string, client> clients_;
  std::set<turn> turns_;   ///< turns of clients with waiting tasks
  std::set<turn> resting_; ///< turns of all other remembered clients
  std::int64_t virtual_time_ = 0;
  std::int64_t waiting_bytes_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

} // namespace twill
