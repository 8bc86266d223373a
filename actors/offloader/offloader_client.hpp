// offloader_client: sends orders for streamed weights to the offloader actor, from the executor's
// thread and from I/O threads.
//
// Thread safety: any thread may call any function. While no offloader is set, no message is sent,
// and io_threads (the threads that run the orders) begins all waiting orders at once by itself. A
// message that is lost with its actor does no harm: its order still waits in the queue, and the
// replacing offloader serves all orders that wait.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "actors/interfaces.hpp"

namespace twill::actors {

class offloader_client {
public:
  /// From now on orders are sent to `offloader`; null: orders are not sent.
  void set_offloader(offloader_actor offloader) {
    const std::lock_guard lock(mutex_);
    offloader_ = std::move(offloader);
  }
  /// Implements io_threads::order_notifier. Returns whether the order was sent to an offloader.
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
