// caf_compat: how actors call CAF to send messages, declare interfaces and set up the scheduler, in
// one place. CAF 0.18 and 1.0 spell these calls otherwise, so a move to a newer CAF changes this
// file.
//
// twill is built and tested with CAF 0.17, the series that Debian 12 and 13 have;
// tools/cmake/twill_caf.cmake refuses any other. Calls that every CAF release spells in the way of
// 0.17 (typed_actor, spawn, stateful pointers, monitor, quit) are used directly.
#pragma once

#include <caf/all.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

namespace twill::actors {

// Signatures of typed interfaces. `takes<M>`: the actor takes M and does not answer.
// `answers<R, M>`: the actor takes M and answers with R.
template <class... Messages>
using takes = caf::reacts_to<Messages...>;
template <class Answer, class... Messages>
using answers = typename caf::replies_to<Messages...>::template with<Answer>;

/// Sends a message from actor `self`; no answer is expected.
template <class Self, class Handle, class... Message>
void tell(Self* self, const Handle& receiver, Message&&... message) {
  self->send(receiver, std::forward<Message>(message)...);
}

/// Sends a message from actor `self` that overtakes the receiver's waiting messages.
template <class Self, class Handle, class Message>
void tell_first(Self* self, const Handle& receiver, Message&& message) {
  self->template send<caf::message_priority::high>(receiver, std::forward<Message>(message));
}

/// Sends a message from actor `self` after `delay`.
template <class Self, class Handle, class Message>
void tell_later(Self* self, const Handle& receiver, std::chrono::milliseconds delay,
                Message&& message) {
  self->delayed_send(receiver, delay, std::forward<Message>(message));
}

/// Sends a message from outside the actor system.
template <class Handle, class Message>
void tell_from_outside(const Handle& receiver, Message&& message) {
  caf::anon_send(receiver, std::forward<Message>(message));
}

/// Sends a message from actor `self`; the function that is passed to `.then` of the result is
/// called with the answer. Do not use `.await`: the actor would handle no other message until the
/// answer comes.
template <class Self, class Handle, class Message>
auto ask(Self* self, const Handle& receiver, Message&& message) {
  return self->request(receiver, caf::infinite, std::forward<Message>(message));
}

/// The state object of a stateful actor.
template <class Self>
auto& state_of(Self* self) {
  return self->state;
}

/// An error as a text for log lines.
inline std::string text_of(const caf::actor_system& system, const caf::error& error) {
  return system.render(error);
}

/// Makes idle threads of the scheduler sleep on a condition variable (work sharing); CAF's default
/// policy, work stealing, polls.
inline void use_work_sharing(caf::actor_system_config& config) {
  config.set("scheduler.policy", caf::atom("sharing"));
}
inline void set_scheduler_threads(caf::actor_system_config& config, std::size_t n_threads) {
  config.set("scheduler.max-threads", n_threads);
}

} // namespace twill::actors
