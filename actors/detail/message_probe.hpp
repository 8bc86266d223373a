// message_probe: lets a test see each message before its handler runs, and end the actor there by
// an exception. A daemon installs none. counted_actor calls it for every actor.
//
// Threads: install it before an engine starts and remove it after the engine is gone; it is called
// on the actors' threads.
#pragma once

#include <atomic>
#include <typeinfo>

#include "actors/detail/mailbox_depths.hpp"

namespace twill::actors {

/// `message` is the message's type (actors/messages.hpp, actors/interfaces.hpp). If a message
/// carries several values, it is the type of the first one. The answer to a request is a message,
/// too.
using message_probe = void (*)(actor_kind actor, const std::type_info& message);

inline std::atomic<message_probe>& installed_probe() {
  static constinit std::atomic<message_probe> installed{nullptr};
  return installed;
}

} // namespace twill::actors
