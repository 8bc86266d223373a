// io_pool: the part of the I/O threads (io_threads.hpp) that one stream of weights, KV or hidden
// states uses. The pool has a copy stream and a page-aligned bounce buffer for each of the tasks
// that may run simultaneously, because a transfer needs both besides a thread.
//
// Thread safety: the functions that post tasks may be called from any thread. Tasks start in the
// order in which they wait; several run simultaneously. They must not throw. The destructor drops
// tasks that have not begun and waits for those that have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "gpu/copy_stream.hpp"
#include "models/errc.hpp"
#include "models/offload/streams/io_threads.hpp"

namespace twill::models::offload {

/// Most bytes of one transfer: large enough for the full speed of a disk, small enough that several
/// workers share the weights of a layer.
inline constexpr std::int64_t transfer_bytes = std::int64_t{1} << 20;

/// The resources that a task has to itself while it runs.
struct io_worker {
  std::size_t number = 0; ///< from 0 on
  gpu::copy_stream copies;
  gpu::host_buffer bounce; // (transfer_bytes + 2 * store_alignment)
};

class io_pool {
public:
  using task = std::function<void(io_worker&)>;

  /// Creates a pool that runs at most `workers` tasks at once, on its own threads or on `shared`
  /// threads. On shared threads the pool is the most urgent user (io_share::rank), so other users
  /// may run fewer tasks while this pool has some.
  static result<std::unique_ptr<io_pool>> start(std::int32_t workers,
                                                std::shared_ptr<io_threads> shared = nullptr);
  io_pool(const io_pool&) = delete;
  io_pool& operator=(const io_pool&) = delete;

  void post(task t);
  /// Queues a task before all waiting tasks.
  void post_first(task t);
  /// Queues the tasks in their sequence; with `first` before all waiting tasks. Throws if memory is
  /// short; then no task is queued.
  void post_all(std::vector<task> tasks, bool first = false);
  /// Runs `tasks` before all waiting tasks and returns when they are done.
  void run_all(std::vector<task> tasks);
  std::size_t workers() const { return workers_.size(); }
  /// Seconds so far in which at least one task was running.
  double busy_seconds() const { return user_->busy_seconds(); }

private:
  io_pool() = default;
  io_threads::task on_worker(task t);

  std::vector<std::unique_ptr<io_worker>> workers_;
  std::shared_ptr<io_threads> threads_;
  std::unique_ptr<io_user> user_; // last member, so that its tasks end before the members that they
                                  // use
};

} // namespace twill::models::offload
