#include "models/offload/streams/io_pool.hpp"

#include <utility>

#include "models/decoder/gpu_error.hpp"
#include "models/offload/streams/disk_store.hpp"

namespace twill::models::offload {

result<std::unique_ptr<io_pool>> io_pool::start(std::int32_t threads) {
  std::unique_ptr<io_pool> pool(new io_pool);
  for (std::int32_t i = 0; i < threads; ++i) {
    auto worker = std::make_unique<io_worker>();
    auto bounce = gpu::host_buffer::allocate(
        static_cast<std::size_t>(transfer_bytes + 2 * store_alignment), "transfer buffer");
    if (!bounce.ok()) return from_gpu(bounce.error());
    worker->bounce = std::move(bounce).value();
    worker->number = static_cast<std::size_t>(i);
    pool->workers_.push_back(std::move(worker));
  }
  for (const auto& worker : pool->workers_)
    pool->threads_.emplace_back([p = pool.get(), w = worker.get()] { p->work(*w); });
  return pool;
}

io_pool::~io_pool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& t : threads_)
    t.join();
}

void io_pool::post(task t) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(t));
  }
  changed_.notify_one();
}

void io_pool::post_first(task t) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_front(std::move(t));
  }
  changed_.notify_one();
}

void io_pool::run_all(std::vector<task> tasks) {
  struct countdown {
    std::mutex mutex;
    std::condition_variable done;
    std::size_t left;
  } waiting;
  waiting.left = tasks.size();
  {
    const std::lock_guard lock(mutex_);
    for (task& t : tasks)
      tasks_.push_front([&waiting, run = std::move(t)](io_worker& w) {
        run(w);
        const std::lock_guard counting(waiting.mutex);
        if (--waiting.left == 0) waiting.done.notify_one();
      });
  }
  changed_.notify_all();
  std::unique_lock lock(waiting.mutex);
  waiting.done.wait(lock, [&] { return waiting.left == 0; });
}

void io_pool::work(io_worker& mine) {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (stop_) return;
    task next = std::move(tasks_.front());
    tasks_.pop_front();
    if (at_work_++ == 0) busy_since_ = std::chrono::steady_clock::now();
    lock.unlock();
    next(mine);
    next = nullptr; // destroy the task's captures before the lock is taken
    lock.lock();
    if (--at_work_ == 0) busy_ += std::chrono::steady_clock::now() - busy_since_;
  }
}

double io_pool::busy_seconds() const {
  const std::lock_guard lock(mutex_);
  const auto now = at_work_ > 0 ? std::chrono::steady_clock::now() - busy_since_
                                : std::chrono::steady_clock::duration{};
  return std::chrono::duration<double>(busy_ + now).count();
}

} // namespace twill::models::offload
