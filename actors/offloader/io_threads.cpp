#include "actors/offloader/io_threads.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace twill::actors {

struct io_threads::shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  std::int32_t alive = 0;
  bool stop = false;

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return stop || !tasks.empty(); });
      if (stop) break;
      std::function<void()> task = std::move(tasks.front());
      tasks.pop_front();
      lock.unlock();
      try {
        task();
      } catch (...) { // memory is short; nobody waits for a task without end
      }
      task = nullptr;
      lock.lock();
    }
    --alive;
    changed.notify_all();
  }
};

io_threads::io_threads(std::int32_t n) : shared_(std::make_shared<shared>()) {
  for (; n > 0; --n) {
    ++shared_->alive;
    std::thread([own = shared_] { own->work(); }).detach();
  }
}

bool io_threads::stop() {
  std::deque<std::function<void()>> dropped;
  std::unique_lock lock(shared_->mutex);
  shared_->stop = true;
  dropped.swap(shared_->tasks);
  shared_->changed.notify_all();
  return shared_->changed.wait_for(lock, std::chrono::seconds(1),
                                   [this] { return shared_->alive == 0; });
}

void io_threads::post(std::function<void()> task) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->stop) return;
  shared_->tasks.push_back(std::move(task));
  shared_->changed.notify_one();
}

} // namespace twill::actors
