#include "config/base/fair_pool.hpp"

#include <algorithm>

#ifdef __linux__
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace twill {
namespace {

/// The cost of a task beside its bytes, so that clients with empty tasks take turns too.
constexpr std::int64_t cost_of_task = 1024;

/// Lets threads that compute steps or serve sockets go first.
void lower_own_priority() {
#ifdef __linux__
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 5);
#endif
}

} // namespace

fair_pool::fair_pool(const limits& bounds) : limits_(bounds) {
  for (std::size_t i = 0; i < std::max<std::size_t>(bounds.threads, 1); ++i)
    threads_.emplace_back([this] { work(); });
}

fair_pool::~fair_pool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_)
    thread.join();
}

bool fair_pool::add(task added) {
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t left = limits_.waiting_bytes - waiting_bytes_ - added.bytes;
    if (left < 0) return false;
    const auto found = clients_.try_emplace(added.client).first;
    client& owner = found->second;
    if (owner.tasks.empty()) {
      resting_.erase({owner.served, found->first});
      owner.served = std::max(owner.served, virtual_time_);
      turns_.emplace(owner.served, found->first);
    } else if (owner.bytes + added.bytes > left) {
      return false; // the rest of the bound is kept for other clients
    }
    owner.bytes += added.bytes;
    waiting_bytes_ += added.bytes;
    owner.tasks.push_back({std::move(added), clock::now()});
  }
  changed_.notify_one();
  return true;
}

std::int64_t fair_pool::waiting_bytes() const {
  const std::lock_guard lock(mutex_);
  return waiting_bytes_;
}

/// The caller must hold the mutex, and a task must be waiting.
fair_pool::waiting_task fair_pool::take_next() {
  const auto found = clients_.find(turns_.begin()->second);
  turns_.erase(turns_.begin());
  client& owner = found->second;
  waiting_task next = std::move(owner.tasks.front());
  owner.tasks.pop_front();
  owner.bytes -= next.what.bytes;
  waiting_bytes_ -= next.what.bytes;
  virtual_time_ = owner.served;
  const bool unwanted = next.what.is_unwanted && next.what.is_unwanted();
  if (!unwanted) owner.served += next.what.bytes + cost_of_task;
  (owner.tasks.empty() ? resting_ : turns_).emplace(owner.served, found->first);
  // A client with which the others have caught up need not be remembered.
  while (!resting_.empty() && (turns_.empty() || resting_.begin()->first <= virtual_time_)) {
    clients_.erase(resting_.begin()->second);
    resting_.erase(resting_.begin());
  }
  if (unwanted) next.what.run = next.what.expire = nullptr;
  return next;
}

void fair_pool::work() {
  lower_own_priority();
  for (;;) {
    waiting_task next;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !turns_.empty(); });
      if (stopping_) return;
      next = take_next();
    }
    const bool late = clock::now() - next.added > limits_.longest_wait;
    const auto& act = late ? next.what.expire : next.what.run;
    if (act) act();
  }
}

} // namespace twill
