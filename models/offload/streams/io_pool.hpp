// io_pool: the threads that move bytes between tiers, beside the compute.
//
// Thread safety: post() from any thread. Tasks start in the order they were posted; several run at
// once. They must not throw. The destructor drops tasks that have not begun and waits for those
// that have. Each worker brings a copy stream and a bounce buffer, page-aligned.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "gpu/copy_stream.hpp"
#include "models/errc.hpp"

namespace twill::models::offload {

/// Most bytes of one transfer: large enough for the full speed of a disk, small enough that several
/// workers share a transfer group.
inline constexpr std::int64_t transfer_bytes = std::int64_t{1} << 20;

struct io_worker {
  std::size_t number = 0; ///< from 0 on
  gpu::copy_stream copies;
  gpu::host_buffer bounce; // (transfer_bytes + 2 * store_alignment)
};

class io_pool {
public:
  using task = std::function<void(io_worker&)>;

  static result<std::unique_ptr<io_pool>> start(std::int32_t threads);
  io_pool(const io_pool&) = delete;
  io_pool& operator=(const io_pool&) = delete;
  ~io_pool();

  void post(task t);
  /// Puts a task before those that wait.
  void post_first(task t);
  /// Runs these tasks before those that wait and returns when they are done.
  void run_all(std::vector<task> tasks);
  std::size_t workers() const { return workers_.size(); }
  /// Seconds so far in which at least one task was running.
  double busy_seconds() const;

private:
  io_pool() = default;
  void work(io_worker& mine);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<task> tasks_;
  std::int32_t at_work_ = 0;
  std::chrono::steady_clock::time_point
      busy_since_;                             ///< since when at least one task has been running
  std::chrono::steady_clock::duration busy_{}; ///< before `busy_since_`
  bool stop_ = false;
  std::vector<std::unique_ptr<io_worker>> workers_;
  std::vector<std::thread> threads_;
};

} // namespace twill::models::offload
