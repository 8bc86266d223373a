#include "models/offload/streams/io_pool.hpp"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "models/decoder/gpu_error.hpp"
#include "models/offload/streams/disk_store.hpp"

namespace twill::models::offload {

result<std::unique_ptr<io_pool>> io_pool::start(std::int32_t workers,
                                                std::shared_ptr<io_threads> shared) {
  std::unique_ptr<io_pool> pool(new io_pool);
  for (std::int32_t i = 0; i < workers; ++i) {
    auto worker = std::make_unique<io_worker>();
    auto bounce = gpu::host_buffer::allocate(
        static_cast<std::size_t>(transfer_bytes + 2 * store_alignment), "transfer buffer");
    if (!bounce.ok()) return from_gpu(bounce.error());
    worker->bounce = std::move(bounce).value();
    worker->number = static_cast<std::size_t>(i);
    pool->workers_.push_back(std::move(worker));
  }
  pool->threads_ = shared ? std::move(shared) : std::make_shared<io_threads>();
  pool->user_ = pool->threads_->join({workers, workers, 0});
  return pool;
}

io_threads::task io_pool::on_worker(task t) {
  return [this, run = std::move(t)](std::size_t slot) { run(*workers_[slot]); };
}

void io_pool::post(task t) {
  user_->post(on_worker(std::move(t)));
}

void io_pool::post_first(task t) {
  user_->post_first(on_worker(std::move(t)));
}

void io_pool::post_all(std::vector<task> tasks, bool first) {
  std::vector<io_threads::task> all;
  all.reserve(tasks.size());
  for (task& t : tasks)
    all.push_back(on_worker(std::move(t)));
  user_->post_all(std::move(all), first);
}

void io_pool::run_all(std::vector<task> tasks) {
  struct countdown {
    std::mutex mutex;
    std::condition_variable done;
    std::size_t left;
  } waiting;
  waiting.left = tasks.size();
  for (task& t : tasks)
    post_first([&waiting, run = std::move(t)](io_worker& w) {
      run(w);
      const std::lock_guard counting(waiting.mutex);
      if (--waiting.left == 0) waiting.done.notify_one();
    });
  std::unique_lock lock(waiting.mutex);
  waiting.done.wait(lock, [&] { return waiting.left == 0; });
}

} // namespace twill::models::offload
