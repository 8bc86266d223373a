// message_probe: lets a test see each message before its handler runs, and end the actor there by
// an exception. A daemon installs none.
//
// Threads: install it before an engine starts and remove it after the engine is gone; it is called
// on the actors' threads.
#pragma once

#include <atomic>

namespace twill::actors {

/// `actor` and `message` are names as in actors/interfaces.hpp.
using message_probe = void (*)(const char* actor, const char* message);

inline std::atomic<message_probe>& installed_probe() {
  static constinit std::atomic<message_probe> installed{nullptr};
  return installed;
}

inline void probe(const char* actor, const char* message) {
  if (const message_probe seen = installed_probe().load(std::memory_order_relaxed))
    seen(actor, message);
}

} // namespace twill::actors
