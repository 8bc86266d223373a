#include "actors/batcher/request_orders.hpp"

#include <functional>
#include <set>

#include "actors/batcher/capacity.hpp"

namespace twill::actors {

void request_orders::refuse(request_id request, const request_error& why) {
  observer_.ended(request, why);
  sessions_.failed(request, why);
  sessions_.forgotten(request);
}

void request_orders::submit(const submit_prompt& prompt, const batcher_limits& limits) {
  observer_.arrived(prompt);
  const std::uint64_t client = std::hash<std::string>{}(prompt.client);
  if (const auto why = no_room(prompt, client, limits, scheduler_, groups_))
    return refuse(prompt.request, *why);
  // The session checked the request against the size that the KV cache had then. The KV cache may
  // be smaller now, because the model was loaded again.
  if (const auto why = misfit(prompt.spec, limits)) return refuse(prompt.request, *why);
  const auto& added = groups_.add(prompt, prompt.limits.max_queued > 0 ? client : 0);
  observer_.queued(added.first, prompt);
  sequence_id leader = 0;
  for (std::int32_t choice = 0; choice < prompt.n_choices; ++choice) {
    if (prompt.is_over(choice)) continue;
    new_sequence arrived{added.first + static_cast<sequence_id>(choice), leader,
                         static_cast<std::int32_t>(prompt.spec.prompt->size()), prompt.spec.max_new,
                         choice == 0 && prompt.spec.needs_all_rows()};
    if (leader == 0) leader = arrived.id;
    arrived.made = static_cast<std::int32_t>(prompt.made_of(choice).size());
    arrived.client = client;
    arrived.weight = prompt.limits.weight;
    arrived.most_running = prompt.limits.max_running;
    arrived.priority = prompt.priority;
    scheduler_.add(arrived);
  }
  sessions_.queued(prompt.request);
}

void request_orders::waited_too_long(request_id request) {
  observer_.waited_too_long(request);
  const auto* g = groups_.find(request);
  if (g == nullptr || g->scheduled) return;
  fail(request, actors::waited_too_long::error());
}

void request_orders::finish_choice(request_id request, std::int32_t choice) {
  observer_.choice_finished(request, choice);
  const auto* g = groups_.find(request);
  if (g == nullptr) return;
  const sequence_id id = g->first + static_cast<sequence_id>(choice);
  if (auto* s = groups_.find_sequence(id)) {
    s->finished = true;
    leave(id);
  }
}

/// Ends a sequence. Results for it from steps under way are dropped.
void request_orders::leave(sequence_id id) {
  if (scheduler_.leave(id)) departed_.push_back(id);
}

template <class F>
void request_orders::for_each_choice(request_id request, F&& apply) {
  const auto* g = groups_.find(request);
  if (g == nullptr) return;
  for (std::int32_t choice = 0; choice < g->n_choices; ++choice)
    apply(g->first + static_cast<sequence_id>(choice));
}

void request_orders::release(request_id request) {
  observer_.released(request);
  release_choices(request);
}

void request_orders::release_choices(request_id request) {
  for_each_choice(request, [this](sequence_id id) { leave(id); });
  groups_.mark_released(request);
}

void request_orders::pause(request_id request) {
  observer_.paused(request);
  for_each_choice(request, [this](sequence_id id) { scheduler_.pause(id); });
  groups_.set_paused(request, true);
}

void request_orders::resume(request_id request) {
  observer_.resumed(request);
  for_each_choice(request, [this](sequence_id id) { scheduler_.resume(id); });
  groups_.set_paused(request, false);
}

void request_orders::refit(const batcher_limits& limits) {
  const std::int64_t capacity = most_tokens_of_sequence(limits);
  for (request_id request : groups_.requests()) {
    for_each_choice(request, [&](sequence_id id) {
      auto* s = groups_.find_sequence(id);
      if (s == nullptr) return;
      const auto why = misfit(s->spec, limits);
      if (!why) return;
      const std::int64_t left = capacity - static_cast<std::int64_t>(s->spec.prompt->size());
      const bool asked = s->spec.sampling->max_tokens >= 0;
      if (asked || left <= static_cast<std::int64_t>(s->output.size())) return fail(request, *why);
      s->spec.max_new = static_cast<std::int32_t>(left);
      scheduler_.shorten(id, s->spec.max_new);
    });
  }
}

void request_orders::fail(request_id request, const request_error& why) {
  if (groups_.find(request) == nullptr) return;
  observer_.ended(request, why);
  sessions_.failed(request, why);
  release_choices(request);
}

void request_orders::fail_step(const step_plan& failed, const std::string& detail,
                               bool device_is_lost) {
  std::set<request_id> lost;
  for (const planned_row& row : failed.rows)
    lost.insert(groups_.at(row.id).request);
  for (request_id request : lost)
    if (device_is_lost)
      fail(request, request_error::lost_with_device());
    else if (!may_compute_again(request))
      fail(request,
           {errc::executor_failed,
            "the step that computed this request failed (" + detail + "); retry the request", ""});
}

/// Returns whether a request whose step failed is computed again: only if no token of it was drawn
/// and this is its first failed step. So a request that is itself the cause of failed steps ends
/// with its second failed step.
bool request_orders::may_compute_again(request_id request) {
  auto* g = groups_.find(request);
  return g != nullptr && g->n_lost++ == 0 && !g->drew;
}

} // namespace twill::actors
