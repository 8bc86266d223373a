// io_threads: threads that run blocking disk reads, disk writes and copies. Several users share
// them: streamed weights, KV blocks that move between tiers, and the streams of an offline job.
//
// Thread safety: every function may be called from any thread. Each user has its own queue and a
// limit on its running tasks, and there are as many threads as all limits together. A user whose
// disk hangs therefore delays no other user. While a more urgent user has tasks, a less urgent user
// has a lower limit (io_share::most_beside), because all share the disk and the cores. Tasks must
// not throw.
//
// The destructor ends idle threads but does not wait for running tasks, since a disk may hang. A
// task must therefore own everything it uses, unless its user waits for the end of the task.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace twill::models::offload {

/// How many tasks a user may run, and how urgent the user is.
struct io_share {
  std::int32_t most = 1;        ///< tasks that run at once
  std::int32_t most_beside = 1; ///< tasks that run at once while a more urgent user has tasks that
                                ///< run or wait
  std::int32_t rank = 0;        ///< a user with a lower rank is more urgent
};

class io_user;

class io_threads {
public:
  /// `slot` is a number below io_share::most that no other running task of the same user has.
  using task = std::function<void(std::size_t slot)>;
  io_threads();
  io_threads(const io_threads&) = delete;
  io_threads& operator=(const io_threads&) = delete;
  ~io_threads();

  /// Adds a user, such as a stream of weights or of KV, which gets its own queue of tasks, and
  /// starts `share.most` more threads for it. The user may outlive this object, but then runs no
  /// tasks.
  std::unique_ptr<io_user> join(const io_share& share);

private:
  friend class io_user;
  struct shared;
  std::shared_ptr<shared> shared_;
};

/// One user of the threads, with its queue.
class io_user {
public:
  using task = io_threads::task;

  io_user(const io_user&) = delete;
  io_user& operator=(const io_user&) = delete;
  ~io_user() { close({}); }

  /// Queues a task. Tasks of one user start in the order in which they were posted. After close()
  /// the task is dropped.
  void post(task t);
  /// Queues a task before all waiting tasks of this user.
  void post_first(task t);
  /// Queues the tasks in their sequence; with `first` before all waiting tasks of this user. Throws
  /// if memory is short; then no task is queued. After close() the tasks are dropped.
  void post_all(std::vector<task> tasks, bool first);
  /// Drops the tasks that have not begun and waits for the running ones, at most for `patience` if
  /// it is given. Returns whether no task runs any more. A second call does nothing.
  bool close(std::optional<std::chrono::milliseconds> patience);
  std::int32_t most() const;
  /// Seconds so far in which at least one task was running.
  double busy_seconds() const;

private:
  friend class io_threads;
  struct state;
  io_user(std::shared_ptr<io_threads::shared> threads, std::shared_ptr<state> own);

  std::shared_ptr<io_threads::shared> threads_;
  std::shared_ptr<state> own_;
};

} // namespace twill::models::offload
