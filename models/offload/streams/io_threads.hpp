// io_threads: threads that wait for disks and copies, shared by their users: streamed weights, KV
// blocks on their way between tiers, the streams of an offline job.
//
// Thread safety: every call from any thread. Each user has a queue of its own and never more tasks
// at once than it said, so that one whose disk hangs holds up nobody else; there are as many
// threads as all users together may have busy. While a more urgent user has anything to do, another
// runs fewer tasks, since they share the disk and the cores. Tasks must not throw.
//
// An order is a list of tasks that belong together, such as the transfers of one group of weights.
// Orders are numbered from 1, and the tasks of an order begin once it is served. Serving one order
// also serves every order queued before it and up to `orders_ahead` later ones, so most orders need
// no notification of their own. Without an `order_notifier` every order begins at once; in a daemon
// the notifier sends a message to the offloader actor, which serves the order.
//
// Threads end with the object. A thread that waits for a disk is detached instead of joined, so a
// task must own what it uses unless its user waits for it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace twill::models::offload {

/// What a user of the threads may have of them.
struct io_share {
  std::int32_t most = 1;        ///< tasks that run at once
  std::int32_t most_beside = 1; ///< ... while a more urgent user has tasks that run or wait
  std::int32_t rank = 0;        ///< a lower one is more urgent
};

class io_user;

class io_threads {
public:
  /// `slot` is below io_share::most and belongs to this task alone while it runs.
  using task = std::function<void(std::size_t slot)>;
  /// Called on the thread that ordered, with the order's number, when fewer than half of
  /// `orders_ahead` orders are served in advance and serve() or serve_all() has followed every
  /// earlier call. Where it returns false or throws, all orders that wait begin at once.
  using order_notifier = std::function<bool(std::uint64_t number)>;
  static constexpr std::uint64_t orders_ahead = 64;

  explicit io_threads(order_notifier notifier = {});
  io_threads(const io_threads&) = delete;
  io_threads& operator=(const io_threads&) = delete;
  ~io_threads();

  /// Begins `share.most` more threads. The user may outlive this object, but runs nothing then.
  std::unique_ptr<io_user> join(const io_share& share);
  /// Lets all orders given so far begin, in the order of their numbers, and the next `orders_ahead`
  /// ones as soon as they are given. A number that no order has yet does nothing.
  void serve(std::uint64_t number);
  /// Lets every order begin that waits, and none in advance.
  void serve_all();

private:
  friend class io_user;
  struct shared;
  std::shared_ptr<shared> shared_;
};

/// One user's part of the threads.
class io_user {
public:
  using task = io_threads::task;

  io_user(const io_user&) = delete;
  io_user& operator=(const io_user&) = delete;
  ~io_user() { close({}); }

  /// Tasks of one user start in the order in which they were posted. Dropped after close().
  void post(task t);
  /// Puts a task before those that wait.
  void post_first(task t);
  /// Orders tasks; with `first` they come before those that wait. Returns the order's number.
  /// Throws where memory is short; nothing has been ordered then.
  std::uint64_t order(std::vector<task> tasks, bool first);
  /// Drops the tasks that have not begun and waits for the others, for as long as `patience` where
  /// it is given. Whether none runs any more. A second call does nothing.
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
