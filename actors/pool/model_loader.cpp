#include "actors/pool/model_loader.hpp"

#include <chrono>
#include <exception>
#include <future>
#include <new>
#include <utility>

namespace twill::actors {

namespace {

/// An exception becomes the failure that its words tell of.
template <class F>
auto guarded(F&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& error) {
    return failure{errc::executor_failed, std::string(error.what())};
  }
}

/// False when memory is too short for it.
bool try_now(const std::function<void()>& job) {
  try {
    job();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

} // namespace

model_loader::model_loader(pool_parts parts, reports to)
    : parts_(std::move(parts)), to_(std::move(to)), thread_([this] { run(); }) {}

void model_loader::open(std::size_t model) {
  push([this, model] {
    auto opened = guarded([&] { return parts_.open(model); });
    to_.opened(model, opened);
  });
}

void model_loader::load(std::size_t model, std::shared_ptr<const opened_model> opened,
                        std::int64_t grant_bytes) {
  push([this, model, opened = std::move(opened), grant_bytes] {
    load_now(model, opened.get(), grant_bytes);
  });
}

void model_loader::end(std::size_t model, engine_port& port) {
  push([this, model, &port] { end_now(model, port); });
}

void model_loader::close(std::shared_ptr<const opened_model> files) {
  push([files = std::move(files)]() mutable { files.reset(); });
}

void model_loader::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void model_loader::push(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void model_loader::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (stopping_) return;
    auto job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    while (!try_now(job) && !stopping())
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    job = nullptr; // what it holds must not wait for the next one
    lock.lock();
  }
}

void model_loader::load_now(std::size_t model, const opened_model* opened,
                            std::int64_t grant_bytes) {
  auto started = guarded([&]() -> result<std::unique_ptr<engine>> {
    if (opened == nullptr) return failure{errc::not_ready, "its files are not open"};
    auto made = parts_.start(model, *opened, grant_bytes);
    while (made->port().state() == engine_state::loading) {
      if (stopping()) return std::unique_ptr<engine>();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (made->port().state() == engine_state::failed)
      return failure{errc::not_ready, made->port().state_detail()};
    return made;
  });
  if (started.ok() && started.value() == nullptr) return; // the pool is ending
  to_.loaded(model, started);
}

void model_loader::end_now(std::size_t model, engine_port& port) {
  // Its clients have heard the last event, but sessions may still count what was used.
  const auto ended = std::make_shared<std::promise<void>>();
  port.drain([ended] { ended->set_value(); });
  ended->get_future().wait_for(std::chrono::seconds(2));
  to_.give_up(model).reset();
  to_.left(model);
}

bool model_loader::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

} // namespace twill::actors
