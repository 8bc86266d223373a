// message_target: a message at an actor, for probes (actors/detail/message_probe.hpp).
#pragma once

#include <cstddef>
#include <string>
#include <typeindex>
#include <typeinfo>

#include "actors/detail/mailbox_depths.hpp"

struct message_target {
  twill::actors::actor_kind actor;
  std::type_index message;

  bool is(twill::actors::actor_kind at, const std::type_info& type) const {
    return actor == at && message == type;
  }
  std::string name() const {
    return twill::actors::actor_kind_names[static_cast<std::size_t>(actor)] + std::string(" at ") +
           message.name();
  }
};

/// The message `Message` at an actor of kind `actor`.
template <class Message>
message_target target(twill::actors::actor_kind actor) {
  return {actor, typeid(Message)};
}
