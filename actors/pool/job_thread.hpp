// job_thread: a thread that runs jobs one after another, in the order in which they were given.
//
// Threads: any thread may give jobs, also while it holds a mutex that jobs lock. A job that throws
// std::bad_alloc must have changed nothing: it is run again from the beginning.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace twill::actors {

class job_thread {
public:
  job_thread() : thread_([this] { run(); }) {}
  ~job_thread() { stop(); }
  job_thread(const job_thread&) = delete;
  job_thread& operator=(const job_thread&) = delete;

  void give(std::function<void()> job);
  /// No further job begins; waiting jobs are dropped.
  void end_soon();
  /// As end_soon(), and waits for the job under way.
  void stop();
  bool stopping() const;

private:
  void run();

  mutable std::mutex mutex_; ///< guards the members below
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::thread thread_;
};

} // namespace twill::actors
