// offloader_client: sends orders for streamed weights to the offloader actor, from the executor's
// thread and from I/O threads.
//
// Thread safety: every call from any thread. While there is no offloader nothing is sent, and the
// orders begin at once. A message that dies with its actor costs nothing: the orders still wait,
// and the offloader that takes its place serves all orders that wait.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "actors/interfaces.hpp"

namespace twill::actors {

class offloader_client {
public:
  /// Orders go to `offloader` from now on; null: to nobody.
  void set_offloader(offloader_actor offloader) {
    const std::lock_guard lock(mutex_);
    offloader_ = std::move(offloader);
  }
  /// An io_threads::order_notifier: whether the order was sent to an offloader.
  bool notify(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    if (!offloader_) return false;
    tell_from_outside(offloader_, fetch_weights{number});
    return true;
  }

private:
  std::mutex mutex_;
  offloader_actor offloader_;
};

} // namespace twill::actors
