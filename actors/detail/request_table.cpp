#include "actors/detail/request_table.hpp"

#include <utility>

namespace twill::actors {

request_table::inserted request_table::insert(request_id id, entry what, std::size_t limit) {
  const std::lock_guard lock(mutex_);
  inserted answer;
  answer.full = entries_.size() >= limit;
  if (what.deadline) {
    deadlines_.emplace(*what.deadline, id);
    answer.start_watching = !std::exchange(watching_, true);
  }
  entries_.emplace(id, std::move(what));
  return answer;
}

void request_table::erase(request_id id) {
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

std::optional<request_table::entry> request_table::find(request_id id) const {
  const std::lock_guard lock(mutex_);
  const auto i = entries_.find(id);
  if (i == entries_.end()) return std::nullopt;
  return i->second;
}

std::vector<session_actor> request_table::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<session_actor> sessions;
  sessions.reserve(entries_.size());
  for (const auto& [id, e] : entries_)
    sessions.push_back(e.session);
  return sessions;
}

void request_table::silence_all() {
  const std::lock_guard lock(mutex_);
  for (auto& [id, e] : entries_)
    e.control->silenced = true;
}

void request_table::clear() {
  std::unordered_map<request_id, entry> entries; // destroyed outside the lock
  const std::lock_guard lock(mutex_);
  entries.swap(entries_);
  deadlines_.clear();
}

std::vector<session_actor> request_table::take_expired(steady_clock::time_point now) {
  const std::lock_guard lock(mutex_);
  std::vector<session_actor> expired;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const auto i = entries_.find(deadlines_.begin()->second);
    deadlines_.erase(deadlines_.begin());
    expired.push_back(i->second.session);
  }
  return expired;
}

bool request_table::keep_watching() {
  const std::lock_guard lock(mutex_);
  watching_ = !deadlines_.empty();
  return watching_;
}

void request_table::drain(std::function<void()> drained) {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  drained_ = std::move(drained);
}

bool request_table::draining() const {
  const std::lock_guard lock(mutex_);
  return draining_;
}

void request_table::check_drained() {
  std::function<void()> drained;
  {
    const std::lock_guard lock(mutex_);
    if (draining_ && entries_.empty()) drained = std::exchange(drained_, nullptr);
  }
  if (drained) drained();
}

} // namespace twill::actors
