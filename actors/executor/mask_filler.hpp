// mask_filler: fills the masks of a step on a thread of its own, beside the forward pass.
//
// begin() and wait() are called by one thread (the executor's), which must not touch the guards and
// masks in between. The thread starts with the first mask and sleeps when there is nothing to do.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "actors/executor/output_guard.hpp"

namespace twill::actors {

class mask_filler {
public:
  struct task {
    output_guard* guard = nullptr;
    std::span<std::uint32_t> mask;
  };

  mask_filler() = default;
  mask_filler(const mask_filler&) = delete;
  mask_filler& operator=(const mask_filler&) = delete;
  ~mask_filler();

  /// The tasks of the last begin() must have been waited for.
  void begin(std::vector<task> tasks);
  /// Returns once every mask is filled; fills those that nobody has begun. Throws what filling one
  /// has thrown.
  void wait();
  /// As wait(), and drops what has been thrown.
  void settle() noexcept;

private:
  void run();
  bool fill_next(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<task> tasks_;
  std::size_t next_ = 0; ///< the first task that nobody has begun
  std::size_t done_ = 0;
  std::exception_ptr thrown_;
  bool stopping_ = false;
  std::thread thread_;
};

} // namespace twill::actors
