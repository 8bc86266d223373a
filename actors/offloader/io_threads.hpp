// io_threads: threads that wait for a disk, so that nobody else has to.
//
// Thread safety: post() from any thread. Tasks start in the order in which they were posted and
// must not throw. The destructor drops the tasks that have not begun and waits for the others, for
// a second at most: a thread that a disk holds longer is left to itself. What a task uses it must
// therefore own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace twill::actors {

class io_threads {
public:
  explicit io_threads(std::int32_t n);
  io_threads(const io_threads&) = delete;
  io_threads& operator=(const io_threads&) = delete;
  ~io_threads() { stop(); }

  /// Whether no task runs any more.
  bool stop();
  /// Dropped after stop().
  void post(std::function<void()> task);

private:
  struct shared;
  std::shared_ptr<shared> shared_;
};

} // namespace twill::actors
