#include "actors/executor/step_ends.hpp"

#include <chrono>
#include <new>
#include <utility>

#include "config/base/assert.hpp"

namespace twill::actors {
namespace {
constexpr std::chrono::milliseconds retry_delay{10};
}

step_ends::step_ends(gpu::device& dev) : dev_(dev), watcher_([this] { watch(); }) {}

step_ends::~step_ends() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  watcher_.join();
}

void step_ends::add(std::function<void()> done) {
  TWILL_ASSERT(added_ - taken_ < most, "a step is waited for before another takes its place");
  step& next = steps_[added_ % most];
  next.end.record(dev_);
  next.done = std::move(done);
  next.outcome.reset();
  {
    const std::lock_guard lock(mutex_);
    ++added_;
  }
  changed_.notify_all();
}

gpu::result<nothing> step_ends::wait() {
  std::unique_lock lock(mutex_);
  TWILL_ASSERT(taken_ < added_, "no step is under way");
  changed_.wait(lock, [this] { return taken_ < ended_; });
  return *steps_[taken_++ % most].outcome;
}

void step_ends::watch() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || ended_ < added_; });
    if (stopping_) return;
    step& oldest = steps_[ended_ % most];
    lock.unlock();
    auto outcome = oldest.end.wait();
    lock.lock();
    oldest.outcome = std::move(outcome);
    const auto done = std::exchange(oldest.done, nullptr);
    ++ended_;
    changed_.notify_all();
    while (!report_end(done, lock))
      if (changed_.wait_for(lock, retry_delay, [this] { return stopping_; })) return;
  }
}

/// Calls `done`. Returns false if the call has thrown std::bad_alloc; it must then be repeated,
/// because the executor would otherwise wait for the end of the step for ever.
bool step_ends::report_end(const std::function<void()>& done, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  bool succeeded = true;
  try {
    done();
  } catch (const std::bad_alloc&) {
    succeeded = false;
  }
  lock.lock();
  return succeeded;
}

} // namespace twill::actors
