// counted_actor: an actor whose mailbox is counted (mailbox_depths), and whose messages a test can
// see (message_probe).
//
// This header includes CAF: include it only from .cpp files of actors/. Any thread may enqueue; all
// else follows CAF's rules.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <typeinfo>

#include "actors/detail/caf_compat.hpp"
#include "actors/detail/mailbox_depths.hpp"
#include "actors/detail/message_probe.hpp"

namespace twill::actors {

/// The configuration of an engine's actor system. It also holds the counters of the mailboxes.
class engine_config final : public caf::actor_system_config {
public:
  engine_config() {
    use_work_sharing(*this);
    set_scheduler_threads(*this, 2);
  }
  const std::shared_ptr<mailbox_depths> depths = std::make_shared<mailbox_depths>();
};

template <class Actor, class State, actor_kind Kind>
class counted_actor : public caf::stateful_actor<State, typename Actor::base> {
public:
  using super = caf::stateful_actor<State, typename Actor::base>;

  explicit counted_actor(caf::actor_config& config) : super(config) {
    if (auto* own = dynamic_cast<const engine_config*>(&this->home_system().config()))
      depths_ = own->depths;
  }
  ~counted_actor() override { count(-depth_.load()); }

  void enqueue(caf::mailbox_element_ptr message, caf::execution_unit* unit) override {
    count(1);
    super::enqueue(std::move(message), unit);
  }
  caf::invoke_message_result consume(caf::mailbox_element& message) override {
    // If the probe throws, CAF answers the current message with an error; until super::consume()
    // sets it, that would be a message that no longer exists.
    this->current_element_ = &message;
    show(message);
    const auto done = super::consume(message);
    // A message that is skipped is consumed later.
    if (done != caf::invoke_message_result::skipped) count(-1);
    return done;
  }

private:
  /// Calls the test's probe, if there is one, with a message that is about to be handled.
  void show(const caf::mailbox_element& message) {
    const message_probe probe = installed_probe().load(std::memory_order_relaxed);
    if (probe == nullptr || message.content().empty()) return;
    // CAF's own types have a number and no type_info.
    if (const std::type_info* type = message.content().type(0).second) probe(Kind, *type);
  }

  void count(std::int64_t n) {
    if (!depths_) return;
    depth_.fetch_add(n, std::memory_order_relaxed);
    depths_->add(Kind, n);
  }

  std::shared_ptr<mailbox_depths> depths_;
  std::atomic<std::int64_t> depth_{0};
};
template <class Actor, class State, actor_kind Kind>
using counted_pointer = counted_actor<Actor, State, Kind>*;

} // namespace twill::actors
