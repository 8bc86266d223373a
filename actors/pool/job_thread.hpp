// job_thread: a thread that does one job after another, in the order in which they were given.
//
// Threads: any thread may give jobs, also under a mutex that the jobs take. A job that throws
// std::bad_alloc must have changed nothing: it is done once more from the beginning.
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
  /// No job begins any more; those that wait are dropped.
  void end_soon();
  /// The same, and waits for the job under way.
  void stop();
  bool stopping() const;

private:
  void run();

  mutable std::mutex mutex_; ///< guards what follows
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::thread thread_;
};

} // namespace twill::actors
