#include "actors/pool/job_thread.hpp"

#include <chrono>
#include <new>
#include <utility>

namespace twill::actors {

namespace {

/// Runs the job; returns false if memory is too short for it.
bool try_now(const std::function<void()>& job) {
  try {
    job();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

} // namespace

void job_thread::give(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void job_thread::end_soon() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

void job_thread::stop() {
  end_soon();
  if (thread_.joinable()) thread_.join();
}

bool job_thread::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void job_thread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (stopping_) return;
    auto job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    while (!try_now(job) && !stopping())
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    job = nullptr; // destroys what the job holds before the thread waits for the next job
    lock.lock();
  }
}

} // namespace twill::actors
