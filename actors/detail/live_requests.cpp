#include "actors/detail/live_requests.hpp"

#include <utility>

namespace twill::actors {

live_requests::inserted live_requests::insert(request_id id, entry added, std::size_t limit) {
  const std::lock_guard lock(mutex_);
  inserted answer;
  answer.full = entries_.size() >= limit;
  if (added.deadline) {
    deadlines_.emplace(*added.deadline, id);
    answer.start_watching = !std::exchange(watching_, true);
  }
  entries_.emplace(id, std::move(added));
  return answer;
}

void live_requests::erase(request_id id) {
  {
    const std::lock_guard lock(mutex_);
    const auto i = entries_.find(id);
    if (i == entries_.end()) return;
    if (i->second.deadline) {
      auto [first, last] = deadlines_.equal_range(*i->second.deadline);
      for (auto d = first; d != last; ++d) {
        if (d->second != id) continue;
        deadlines_.erase(d);
        break;
      }
    }
    entries_.erase(i);
  }
  check_drained();
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
  deadlines_.clear();
}

std::vector<session_actor> live_requests::take_expired(steady_clock::time_point now) {
  const std::lock_guard lock(mutex_);
  std::vector<session_actor> expired;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    expired.push_back(entries_.find(deadlines_.begin()->second)->second.session);
    deadlines_.erase(deadlines_.begin());
  }
  return expired;
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

void live_requests::check_drained() {
  std::function<void()> drained;
  {
    const std::lock_guard lock(mutex_);
    if (draining_ && entries_.empty()) drained = std::exchange(drained_, nullptr);
  }
  if (drained) drained();
}

} // namespace twill::actors
