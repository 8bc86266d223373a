#include "actors/pool/request_router.hpp"

#include <chrono>
#include <cstdint>
#include <new>
#include <string_view>
#include <utility>

#include "actors/detail/holder_name.hpp"
#include "actors/port/error_words.hpp"
#include "actors/port/request_summary.hpp"
#include "actors/session/prompt.hpp"
#include "config/base/log.hpp"

namespace twill::actors {

namespace {

using steady_clock = std::chrono::steady_clock;
using place = held_request::place;

/// Calls request::on_end for a request that reached no engine.
void report_end(const held_request& held, std::string_view status, bool failed) {
  if (!held.asked.on_end) return;
  const auto now = steady_clock::now();
  request_summary about;
  about.id = held.id;
  about.client_id = held.asked.client_id;
  about.tenant = held.asked.tenant;
  about.model = held.asked.model;
  about.status = status;
  about.failed = failed;
  about.arrived = held.asked.arrived == steady_clock::time_point{} ? now : held.asked.arrived;
  about.total = now - about.arrived;
  about.sampling = &held.asked.sampling;
  held.asked.on_end(about);
}

} // namespace

request_error shutting_down() {
  return {errc::shutting_down, "the server is shutting down; retry later", ""};
}

request_router::request_router(std::mutex& mutex, pool_state& state, const pooled_models& models,
                               std::function<void()> wake)
    : mutex_(mutex), state_(state), models_(models), wake_(std::move(wake)) {}

engine_port* request_router::take_in(const held_request_ptr& held, const config::options& options) {
  requests_.add(held);
  const auto refuse = [&](request_error why) -> engine_port* {
    this->refuse(held, std::move(why));
    return nullptr;
  };
  if (draining_) return refuse(shutting_down());
  const auto found = models_.find(held->asked.model);
  if (!found)
    return refuse({errc::unknown_model, models_.unknown(held->asked.model).detail, "model"});
  const auto now = steady_clock::now();
  held->model = *found;
  held->asked.model = models_.id(*found);
  held->bytes = prompt_bytes(held->asked.prompt);
  if (state_.now(*found) != pool_state::phase::awake) {
    if (auto full = requests_.queue_full(*held, state_.waiting(*found), options))
      return refuse(std::move(*full));
    requests_.begin_wait(*held, options, now);
  }
  switch (state_.asked(*found, now)) {
  case pool_state::verdict::refuse:
    return refuse(not_ready(*found));
  case pool_state::verdict::send:
    held->where = place::sending;
    return &models_.port(*found);
  case pool_state::verdict::wait:
    break;
  }
  return nullptr;
}

/// Refuses a request. The dispatcher informs the client, so that no callback runs inside a call of
/// the engine_port.
void request_router::refuse(const held_request_ptr& held, request_error why) {
  refused_.push_back(held);
  if (held->where == place::waiting) requests_.end_wait(*held);
  held->refusal = std::move(why);
  held->where = place::refused;
}

void request_router::end_waiting(const held_request_ptr& held, request_error why) {
  refuse(held, std::move(why));
  state_.gave_up(held->model, steady_clock::now());
}

request_error request_router::not_ready(std::size_t m) const {
  return {errc::not_ready,
          "the model " + models_.id(m) + " cannot be served" +
              (state_.now(m) == pool_state::phase::fetching ? " yet: " : ": ") + state_.detail(m),
          ""};
}

void request_router::send(const held_request_ptr& held, engine_port& to) {
  const request_id inner =
      to.submit(std::move(held->asked), [this, held](event e) { pass_on(held, std::move(e)); });
  const std::lock_guard lock(mutex_);
  held->inner = inner;
  held->where = place::sent;
  if (held->silenced || held->over) forget(*held);
  wake_();
  if (held->over) return;
  try {
    if (held->silenced)
      to.cancel(inner);
    else if (held->aborted)
      to.abort_all(); // all other requests in this engine were aborted already
    else if (held->paused)
      to.pause(inner);
  } catch (const std::bad_alloc&) { // the request continues in the engine, which has it now
  }
}

void request_router::give_up(const held_request_ptr& held, const event_callback& on_event) {
  if (held) {
    const std::lock_guard lock(mutex_);
    if (held->where == place::refused) return; // the dispatcher informs its client
    forget(*held);
    wake_();
    if (held->silenced.exchange(true)) return;
  }
  event refused;
  refused.error = request_error{errc::executor_failed, "out of memory", ""};
  refused.last = true;
  on_event(std::move(refused));
}

void request_router::pass_on(const held_request_ptr& held, event e) {
  if (held->silenced) return;
  const bool last = e.last;
  held->on_event(std::move(e));
  if (!last) return;
  const std::lock_guard lock(mutex_);
  held->over = true;
  if (held->where == place::sending) return; // send() handles this case
  forget(*held);
  wake_();
}

/// Removes a request that is over.
void request_router::forget(const held_request& over) {
  const held_request_ptr held = requests_.find(over.id);
  if (!held) return;
  requests_.remove(*held);
  const auto now = steady_clock::now();
  if (held->where == place::sending || held->where == place::sent)
    return state_.ended(held->model, now);
  if (held->where != place::waiting) return;
  requests_.end_wait(*held);
  state_.gave_up(held->model, now);
}

void request_router::cancel(request_id id) {
  const held_request_ptr held = requests_.find(id);
  if (!held) return;
  held->silenced = true;
  // A request that is just being sent to its engine is cancelled by the thread that sends it. A
  // refused request is ended by the dispatcher, the pool's thread that carries out decisions.
  if (held->where == place::sending || held->where == place::refused) return;
  if (held->where == place::sent)
    models_.port(held->model).cancel(held->inner);
  else
    report_end(*held, "cancelled", false);
  forget(*held);
  wake_();
}

void request_router::set_paused(request_id id, bool paused) {
  const held_request_ptr held = requests_.find(id);
  if (!held) return;
  held->paused = paused;
  if (held->where != place::sent) return;
  auto& port = models_.port(held->model);
  paused ? port.pause(held->inner) : port.resume(held->inner);
}

void request_router::abort(const held_request_ptr& held) {
  if (held->where == place::waiting) end_waiting(held, shutting_down());
  held->aborted = held->where == place::sending; // the sending thread then aborts it
}

void request_router::stop_events() {
  for (const auto& [id, held] : requests_.all())
    held->silenced = true;
}

void request_router::drain(std::function<void()> drained) {
  draining_ = true;
  drained_ = std::move(drained);
}

void request_router::send_waiting(std::size_t model) {
  for (const auto& [id, held] : requests_.all()) {
    if (held->model != model || held->where != place::waiting) continue;
    sends_.push_back(held);
    requests_.end_wait(*held);
    held->where = place::sending;
  }
}

void request_router::refuse_waiting(std::size_t model) {
  for (const auto& [id, held] : requests_.all()) {
    if (held->model == model && held->where == place::waiting)
      refuse(held, draining_ ? shutting_down() : not_ready(model));
  }
  if (draining_ || state_.now(model) == pool_state::phase::fetching) return;
  log::error("the model " + models_.id(model) + " cannot be served: " + state_.detail(model));
}

request_router::work request_router::take_work() {
  work todo;
  todo.sends.swap(sends_);
  todo.refusals.swap(refused_);
  if (draining_ && requests_.empty()) todo.drained = std::exchange(drained_, nullptr);
  return todo;
}

void request_router::do_work(work& todo) {
  for (const auto& held : todo.refusals) {
    report_end(*held, word_of(held->refusal.code), true);
    event refused;
    refused.error = std::move(held->refusal);
    refused.last = true;
    if (!held->silenced.exchange(true)) held->on_event(std::move(refused));
    const std::lock_guard lock(mutex_);
    requests_.remove(*held);
  }
  // The engine stays: the requests count as under way.
  for (const auto& held : todo.sends) {
    try {
      send(held, models_.port(held->model));
    } catch (const std::bad_alloc&) {
      give_up(held, held->on_event);
    }
  }
  if (todo.drained) todo.drained();
}

void request_router::account_model(std::size_t m, const std::string& prefix, ledger& to) const {
  const std::string under_way = prefix + "requests under way",
                    waiting = prefix + "requests that wait";
  to.taken(under_way, static_cast<std::int64_t>(state_.under_way(m)));
  to.taken(waiting, static_cast<std::int64_t>(state_.waiting(m)));
  for (const auto& [id, held] : requests_.all()) {
    if (held->model != m) continue;
    if (held->where == place::sent) to.held(under_way, prefix + holder_name(held->inner));
    if (held->where == place::sending) to.held(under_way, pool_holder_name(id));
    if (held->where == place::waiting) to.held(waiting, pool_holder_name(id));
  }
}

} // namespace twill::actors
