// mask_filler: fills a step's masks (bitmaps of the tokens that a grammar allows next) on a thread
// of its own, in parallel with the forward pass.
//
// begin() and wait() must be called by one thread (the executor's), which must not use the output
// guards (output_guard) and masks between the two calls. The filler's thread starts with the first
// mask and sleeps while there is nothing to do.
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

  /// Begins to fill masks. wait() must have returned for the tasks of the previous begin().
  void begin(std::vector<task> tasks);
  /// Returns once every mask is filled; the caller's thread fills masks that the other thread has
  /// not begun. Rethrows an exception that filling a mask has thrown.
  void wait();
  /// As wait(), but drops such an exception.
  void settle() noexcept;

private:
  void run();
  bool fill_next(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<task> tasks_;
  std::size_t next_ = 0; ///< the first task that was not begun
  std::size_t done_ = 0;
  std::exception_ptr thrown_;
  bool stopping_ = false;
  std::thread thread_;
};

} // namespace twill::actors
