#include "actors/executor/mask_filler.hpp"

#include <utility>

namespace twill::actors {

mask_filler::~mask_filler() {
  settle();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void mask_filler::begin(std::vector<task> tasks) {
  {
    const std::lock_guard lock(mutex_);
    tasks_ = std::move(tasks);
    next_ = done_ = 0;
    thrown_ = nullptr;
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  changed_.notify_all();
}

void mask_filler::wait() {
  std::unique_lock lock(mutex_);
  while (fill_next(lock)) {
  }
  changed_.wait(lock, [this] { return done_ == tasks_.size(); });
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void mask_filler::settle() noexcept {
  try {
    wait();
  } catch (...) {
  }
}

void mask_filler::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_)
    if (!fill_next(lock))
      changed_.wait(lock, [this] { return stopping_ || next_ < tasks_.size(); });
}

/// Fills the next mask that was not begun; returns false if there is none.
bool mask_filler::fill_next(std::unique_lock<std::mutex>& lock) {
  if (next_ >= tasks_.size()) return false;
  const task taken = tasks_[next_++];
  lock.unlock();
  std::exception_ptr thrown;
  try {
    taken.guard->fill_mask(taken.mask);
  } catch (...) {
    thrown = std::current_exception();
  }
  lock.lock();
  if (thrown) thrown_ = thrown;
  if (++done_ == tasks_.size()) changed_.notify_all();
  return true;
}

} // namespace twill::actors
