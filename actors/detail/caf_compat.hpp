// caf_compat: the spellings of CAF that differ between its releases 0.17, 0.18, 0.19 and 1.0. No
// other file tests CAF's version; a branch for an older release leaves with that release.
//
// What all of them spell alike (typed_actor, spawn, stateful pointers, monitor, quit) is used
// directly. twill is built and tested with 0.17; from 0.18 on, actors/type_ids.hpp needs a type-ID
// block besides.
#pragma once

#include <caf/all.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

// CAF numbers its releases as major * 10000 + minor * 100 + patch.
#define TWILL_CAF_0_18 (CAF_VERSION >= 1800)
#define TWILL_CAF_1_0 (CAF_VERSION >= 10000)

namespace twill::actors {

// Signatures of typed interfaces. `takes<M>`: the actor takes M and does not answer.
// `answers<R, M>`: the actor takes M and answers with R.
#if TWILL_CAF_0_18
template <class... Messages>
using takes = caf::result<void>(Messages...);
template <class Answer, class... Messages>
using answers = caf::result<Answer>(Messages...);
#else
template <class... Messages>
using takes = caf::reacts_to<Messages...>;
template <class Answer, class... Messages>
using answers = typename caf::replies_to<Messages...>::template with<Answer>;
#endif

/// Sends a message from actor `self`; no answer is expected.
template <class Self, class Handle, class... Message>
void tell(Self* self, const Handle& receiver, Message&&... message) {
#if TWILL_CAF_1_0
  self->mail(std::forward<Message>(message)...).send(receiver);
#else
  self->send(receiver, std::forward<Message>(message)...);
#endif
}

/// The same, ahead of the messages that wait for the receiver.
template <class Self, class Handle, class Message>
void tell_first(Self* self, const Handle& receiver, Message&& message) {
#if TWILL_CAF_1_0
  self->mail(std::forward<Message>(message)).urgent().send(receiver);
#else
  self->template send<caf::message_priority::high>(receiver, std::forward<Message>(message));
#endif
}

/// Sends a message from actor `self` after `delay`.
template <class Self, class Handle, class Message>
void tell_later(Self* self, const Handle& receiver, std::chrono::milliseconds delay,
                Message&& message) {
#if TWILL_CAF_1_0
  self->mail(std::forward<Message>(message)).delay(delay).send(receiver);
#else
  self->delayed_send(receiver, delay, std::forward<Message>(message));
#endif
}

/// Sends a message from outside the actor system.
template <class Handle, class Message>
void tell_from_outside(const Handle& receiver, Message&& message) {
#if TWILL_CAF_1_0
  caf::anon_mail(std::forward<Message>(message)).send(receiver);
#else
  caf::anon_send(receiver, std::forward<Message>(message));
#endif
}

/// Sends a message from actor `self`; the result has `.then` and `.await`, which wait for the
/// answer.
template <class Self, class Handle, class Message>
auto ask(Self* self, const Handle& receiver, Message&& message) {
#if TWILL_CAF_1_0
  return self->mail(std::forward<Message>(message)).request(receiver, caf::infinite);
#else
  return self->request(receiver, caf::infinite, std::forward<Message>(message));
#endif
}

/// The state object of a stateful actor.
template <class Self>
auto& state_of(Self* self) {
#if TWILL_CAF_1_0
  return self->state();
#else
  return self->state;
#endif
}

/// An error as a text for log lines.
inline std::string text_of(const caf::actor_system& system, const caf::error& error) {
#if TWILL_CAF_0_18
  (void)system;
  return caf::to_string(error);
#else
  return system.render(error);
#endif
}

/// Makes idle threads of the scheduler sleep on a condition variable (work sharing); CAF's default
/// policy, work stealing, polls.
inline void use_work_sharing(caf::actor_system_config& config) {
#if TWILL_CAF_0_18
  config.set("caf.scheduler.policy", "sharing");
#else
  config.set("scheduler.policy", caf::atom("sharing"));
#endif
}
inline void set_scheduler_threads(caf::actor_system_config& config, std::size_t n_threads) {
#if TWILL_CAF_0_18
  config.set("caf.scheduler.max-threads", n_threads);
#else
  config.set("scheduler.max-threads", n_threads);
#endif
}

} // namespace twill::actors
