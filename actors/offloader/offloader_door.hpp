// offloader_door: where orders for streamed weights go in: the offloader actor of the moment is
// told a ticket, from the executor's thread and from I/O threads.
//
// Thread safety: every call from any thread. Where no actor is, nobody is told, and the orders
// begin at once. A message that dies with its actor costs nothing: the orders still wait, and the
// actor that takes the place serves all that wait.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "actors/interfaces.hpp"

namespace twill::actors {

class offloader_door {
public:
  /// A null handle closes the door.
  void lead_to(offloader_actor offloader) {
    const std::lock_guard lock(mutex_);
    offloader_ = std::move(offloader);
  }
  /// The bell of io_threads: whether an actor was told.
  bool ring(std::uint64_t ticket) {
    const std::lock_guard lock(mutex_);
    if (!offloader_) return false;
    tell_from_outside(offloader_, fetch_weights{ticket});
    return true;
  }

private:
  std::mutex mutex_;
  offloader_actor offloader_;
};

} // namespace twill::actors
