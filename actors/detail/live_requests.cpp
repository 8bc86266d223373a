#include "actors/detail/live_requests.hpp"

#include <algorithm>
#include <utility>

#include "actors/detail/holder_name.hpp"
#include "actors/detail/tenant_budgets.hpp"

namespace twill::actors {

live_requests::inserted live_requests::insert(request_id id, entry added,
                                              steady_clock::time_point now) {
  const std::lock_guard lock(mutex_);
  inserted answer;
  const std::size_t live = entries_.size() - n_paused_;
  std::size_t& of_client = live_of_[added.client];
  const auto paused_of = paused_of_.find(added.client);
  const std::size_t n_paused_of = paused_of == paused_of_.end() ? 0 : paused_of->second.size();
  if (added.most_of_client > 0 && of_client - n_paused_of >= added.most_of_client)
    answer.refused = "this tenant has as many requests as it may (`tenants.max_queued`)";
  else if (live >= limits_.live)
    answer.refused = "the queue is full (`scheduler.max_queued`)";
  else if (!added.client.empty() && of_client >= 7 * (limits_.live - live))
    answer.refused = "this client has as many requests as the queue has room for";
  else if (bytes_ + added.bytes > limits_.bytes)
    answer.refused = "the prompts of all requests take too much memory (`scheduler.max_prompts`)";
  const auto has_arrived = [&](drain_rate& rate, std::size_t n_before, std::size_t most) {
    if (n_before == 0) rate.resume(now);
    if (!answer.refused && 2 * n_before < most) rate.forget_turns();
  };
  has_arrived(leaving_, live, limits_.live);
  if (const auto own = leaving_of_.find(added.client); own != leaving_of_.end())
    has_arrived(own->second, of_client - n_paused_of, added.most_of_client);
  of_client += 1;
  bytes_ += added.bytes;
  add_deadline(added.deadline, {id, false});
  add_deadline(added.queue_deadline, {id, true});
  if (!deadlines_.empty()) answer.start_watching = !std::exchange(watching_, true);
  entries_.emplace(id, std::move(added));
  return answer;
}

void live_requests::add_deadline(std::optional<steady_clock::time_point> at, due what) {
  if (at) deadlines_.emplace(*at, what);
}

void live_requests::remove_deadline(std::optional<steady_clock::time_point> at, request_id id) {
  if (!at) return;
  const auto [first, last] = deadlines_.equal_range(*at);
  for (auto d = first; d != last; ++d) {
    if (d->second.id != id) continue;
    deadlines_.erase(d);
    return;
  }
}

std::int32_t live_requests::retry_after_s(const std::string& client, steady_clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto own = leaving_of_.find(client);
  return (own == leaving_of_.end() ? leaving_ : own->second).retry_after_s(now);
}

void live_requests::erase(request_id id, bool was_queued, steady_clock::time_point now) {
  {
    const std::lock_guard lock(mutex_);
    const auto i = entries_.find(id);
    if (i == entries_.end()) return;
    remove_deadline(i->second.deadline, id);
    remove_deadline(i->second.queue_deadline, id);
    if (was_queued) {
      leaving_.left(now);
      if (i->second.most_of_client > 0) leaving_of_[i->second.client].left(now);
    }
    set_paused(id, i->second, false);
    bytes_ -= i->second.bytes;
    if (const auto of = live_of_.find(i->second.client); --of->second == 0) live_of_.erase(of);
    entries_.erase(i);
  }
  check_drained();
}

/// The caller holds the mutex.
void live_requests::set_paused(request_id id, entry& e, bool paused) {
  if (e.paused == paused) return;
  e.paused = paused;
  const auto of = paused_of_.try_emplace(e.client).first;
  if (paused) {
    of->second.insert(id);
    n_paused_ += 1;
    paused_bytes_ += e.bytes;
  } else {
    of->second.erase(id);
    n_paused_ -= 1;
    paused_bytes_ -= e.bytes;
  }
  if (of->second.empty()) paused_of_.erase(of);
}

std::optional<session_actor> live_requests::pause(request_id id) {
  const std::lock_guard lock(mutex_);
  const auto i = entries_.find(id);
  if (i == entries_.end()) return std::nullopt;
  set_paused(id, i->second, true);
  return find_surplus();
}

void live_requests::resume(request_id id) {
  const std::lock_guard lock(mutex_);
  if (const auto i = entries_.find(id); i != entries_.end()) set_paused(id, i->second, false);
}

std::optional<session_actor> live_requests::find_surplus() {
  if (n_paused_ <= limits_.paused && paused_bytes_ <= limits_.bytes / 4) return std::nullopt;
  const auto most =
      std::max_element(paused_of_.begin(), paused_of_.end(), [](const auto& a, const auto& b) {
        return a.second.size() < b.second.size();
      });
  const request_id latest = *most->second.rbegin();
  entry& e = entries_.at(latest);
  set_paused(latest, e, false); // so that it is not chosen twice
  return e.session;
}

std::optional<live_requests::entry> live_requests::find(request_id id) const {
  const std::lock_guard lock(mutex_);
  const auto i = entries_.find(id);
  if (i == entries_.end()) return std::nullopt;
  return i->second;
}

std::vector<session_actor> live_requests::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<session_actor> sessions;
  sessions.reserve(entries_.size());
  for (const auto& [id, e] : entries_)
    sessions.push_back(e.session);
  return sessions;
}

void live_requests::silence_all() {
  const std::lock_guard lock(mutex_);
  for (auto& [id, e] : entries_)
    e.control->silenced = true;
}

void live_requests::clear() {
  std::unordered_map<request_id, entry> entries; // destroyed outside the lock
  const std::lock_guard lock(mutex_);
  entries.swap(entries_);
  live_of_.clear();
  paused_of_.clear();
  n_paused_ = 0;
  bytes_ = paused_bytes_ = 0;
  deadlines_.clear();
}

std::vector<live_requests::expired> live_requests::take_expired(steady_clock::time_point now) {
  const std::lock_guard lock(mutex_);
  std::vector<expired> passed;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const due what = deadlines_.begin()->second;
    passed.push_back({what.id, entries_.find(what.id)->second.session, what.waited});
    deadlines_.erase(deadlines_.begin());
  }
  return passed;
}

bool live_requests::keep_watching() {
  const std::lock_guard lock(mutex_);
  watching_ = !deadlines_.empty();
  return watching_;
}

void live_requests::drain(std::function<void()> drained) {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  drained_ = std::move(drained);
}

bool live_requests::draining() const {
  const std::lock_guard lock(mutex_);
  return draining_;
}

void live_requests::account(ledger& to) const {
  const std::string of_clients = "requests of clients", paused = "paused requests",
                    of_paused = "paused requests of clients", bytes = "bytes of prompts",
                    paused_bytes = "bytes of paused prompts", deadlines = "deadlines";
  const std::lock_guard lock(mutex_);
  for (const auto& [client, n] : live_of_)
    to.taken(of_clients, static_cast<std::int64_t>(n));
  for (const auto& [client, ids] : paused_of_)
    to.taken(of_paused, static_cast<std::int64_t>(ids.size()));
  to.taken(paused, static_cast<std::int64_t>(n_paused_));
  to.taken(bytes, bytes_);
  to.taken(paused_bytes, paused_bytes_);
  to.taken(deadlines, static_cast<std::int64_t>(deadlines_.size()));
  for (const auto& [at, what] : deadlines_)
    to.held(deadlines, holder_name(what.id));
  for (const auto& [id, e] : entries_) {
    const std::string holder = holder_name(id);
    to.exists(holder);
    to.held(of_clients, holder);
    to.held(bytes, holder, e.bytes);
    if (e.control) to.held(tenant_budgets::charged_tokens, holder, e.control->charged_tokens);
    if (!e.paused) continue;
    to.held(paused, holder);
    to.held(of_paused, holder);
    to.held(paused_bytes, holder, e.bytes);
  }
}

void live_requests::check_drained() {
  std::function<void()> drained;
  {
    const std::lock_guard lock(mutex_);
    if (draining_ && entries_.empty()) drained = std::exchange(drained_, nullptr);
  }
  if (drained) drained();
}

} // namespace twill::actors
