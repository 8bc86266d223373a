#include "actors/pool/pool_state.hpp"

#include <algorithm>
#include <utility>

#include "config/base/units.hpp"

namespace twill::actors {

pool_state::pool_state(std::vector<model_rules> models, const limits& bounds) : limits_(bounds) {
  models_.resize(models.size());
  orders_.reserve(64 + 16 * models.size());
  for (index m = 0; m < models.size(); ++m)
    models_[m].rules = models[m];
}

void pool_state::begin(time now) {
  for (auto& m : models_) {
    if (m.rules.pinned) want(m);
    m.load_ordered = m.rules.pinned;
    m.state = phase::opening;
    orders_.push_back(open{index_of(m)});
  }
  settle(now);
}

void pool_state::fetching(index i, time now) {
  auto& m = models_[i];
  if (m.state != phase::opening) return;
  m.state = phase::fetching;
  m.begun = true;
  m.detail = "it is being fetched; ask again later" +
             (m.detail.empty() ? "" : " (the last try: " + m.detail + ")");
  if (!m.load_ordered) m.wanted.reset();
  refuse_waiting_for(m);
  settle(now);
}

void pool_state::opened(index i, std::int64_t need, time now) {
  auto& m = models_[i];
  if (!is_opening(m)) return;
  m.state = phase::asleep;
  m.detail.clear();
  m.need = std::max<std::int64_t>(need, 0);
  if (!m.rules.pinned) m.begun = true;
  if (std::exchange(m.forgotten, false) && !m.wanted) {
    m.state = phase::closed;
    orders_.push_back(close{i});
  }
  settle(now);
}

void pool_state::open_failed(index i, std::string why, time now) {
  if (!is_opening(models_[i])) return;
  fail(i, std::move(why), now);
  settle(now);
}

void pool_state::loaded(index i, time now) {
  auto& m = models_[i];
  if (m.state != phase::loading) return;
  m.state = m.by_order ? phase::draining : phase::awake;
  m.begun = true;
  m.failures = 0;
  m.load_time = now - m.load_began;
  m.awake_since = m.last_used = now;
  m.wanted.reset();
  m.load_ordered = false;
  if (m.waiting > 0) {
    m.under_way += std::exchange(m.waiting, 0);
    orders_.push_back(send_waiting{i});
  }
  settle(now);
}

void pool_state::load_failed(index i, std::string why, time now) {
  auto& m = models_[i];
  if (m.state != phase::loading) return;
  m.grant = 0;
  // The next try opens the files again, since they may be the cause of the failure.
  orders_.push_back(close{i});
  fail(i, std::move(why), now);
  settle(now);
}

void pool_state::left(index i, time now) {
  auto& m = models_[i];
  if (m.state != phase::leaving) return;
  m.state = phase::asleep;
  m.grant = 0;
  m.by_order = false;
  if (std::exchange(m.forgotten, false)) {
    m.state = phase::closed;
    orders_.push_back(close{i});
  }
  settle(now);
}

pool_state::verdict pool_state::asked(index i, time now) {
  auto& m = models_[i];
  if (m.state == phase::awake) {
    ++m.under_way;
    m.last_used = now;
    return verdict::send;
  }
  if (m.state == phase::failed) {
    if (now < m.retry_at) return verdict::refuse;
    m.state = phase::closed;
  }
  if (m.state == phase::fetching) return verdict::refuse;
  ++m.waiting;
  want(m);
  settle(now);
  // settle() may have found that the model can never be loaded.
  return m.state == phase::failed ? verdict::refuse : verdict::wait;
}

void pool_state::ended(index i, time now) {
  auto& m = models_[i];
  if (m.under_way > 0) --m.under_way;
  m.last_used = now;
  settle(now);
}

void pool_state::gave_up(index i, time now) {
  auto& m = models_[i];
  if (m.waiting > 0) --m.waiting;
  // A load under way continues: the model will be ready for the next request.
  if (m.waiting == 0 && !m.load_ordered) m.wanted.reset();
  settle(now);
}

void pool_state::ask_load(index i, time now) {
  auto& m = models_[i];
  if (m.state == phase::failed) m.state = phase::closed;
  m.by_order = m.forgotten = false;
  if (m.state != phase::awake && m.state != phase::loading) {
    m.load_ordered = true;
    want(m);
  }
  settle(now);
}

void pool_state::ask_sleep(index i, time now) {
  auto& m = models_[i];
  m.load_ordered = false;
  if (m.waiting == 0) m.wanted.reset();
  if (m.state == phase::awake) m.state = phase::draining;
  m.by_order = m.state == phase::loading || m.state == phase::draining;
  settle(now);
}

void pool_state::ask_unload(index i, time now) {
  auto& m = models_[i];
  if (m.state == phase::asleep || m.state == phase::failed) {
    if (m.state == phase::asleep) orders_.push_back(close{i});
    m.state = phase::closed;
    m.detail.clear();
  }
  m.forgotten = holds_memory(m) || is_opening(m);
  ask_sleep(i, now);
}

std::int64_t pool_state::granted() const {
  std::int64_t sum = 0;
  for (const auto& m : models_)
    sum += m.grant;
  return sum;
}

bool pool_state::begun() const {
  return std::all_of(models_.begin(), models_.end(), [](const one& m) { return m.begun; });
}

bool pool_state::is_opening(const one& m) {
  return m.state == phase::opening || m.state == phase::fetching;
}

bool pool_state::holds_memory(const one& m) const {
  return m.state == phase::loading || m.state == phase::awake || m.state == phase::draining ||
         m.state == phase::leaving;
}

void pool_state::settle(time now) {
  wake_at_.reset();
  sleep_unused(now);
  take_next(now);
  // begun() is false until the pinned models, which are kept in memory, were loaded. It must not
  // stay false because an administrator has put one of them to sleep before it was loaded. So a
  // model that sleeps or whose files are closed, and that no request or order wants, counts as
  // started.
  for (auto& m : models_)
    if ((m.state == phase::asleep || m.state == phase::closed) && !m.wanted) m.begun = true;
  // If no model needs room any more, models that drain to make room stay awake.
  if (next_wanted()) return;
  for (auto& m : models_) {
    if (m.state != phase::draining || m.by_order) continue;
    m.state = phase::awake;
    m.wanted.reset();
    m.load_ordered = false;
    if (m.waiting == 0) continue;
    m.under_way += std::exchange(m.waiting, 0);
    orders_.push_back(send_waiting{index_of(m)});
  }
}

void pool_state::sleep_unused(time now) {
  for (auto& m : models_) {
    if (m.state == phase::draining && m.under_way == 0) start_leaving(m);
    if (m.state != phase::awake || m.under_way > 0 || m.rules.pinned) continue;
    if (m.rules.keep_alive <= duration{0}) continue;
    if (now - m.last_used >= m.rules.keep_alive)
      start_leaving(m);
    else
      wake_by(m.last_used + m.rules.keep_alive);
  }
}

void pool_state::start_leaving(one& m) {
  m.state = phase::leaving;
  orders_.push_back(leave{index_of(m)});
}

std::optional<pool_state::index> pool_state::next_wanted() const {
  const auto comes_before = [](const one& a, const one& b) {
    return a.rules.pinned != b.rules.pinned ? a.rules.pinned : *a.wanted < *b.wanted;
  };
  std::optional<index> next;
  for (index i = 0; i < models_.size(); ++i) {
    const auto& m = models_[i];
    if (!wants_memory(m)) continue;
    if (!next || comes_before(m, models_[*next])) next = i;
  }
  return next;
}

bool pool_state::wants_memory(const one& m) {
  return m.wanted && (m.state == phase::asleep || m.state == phase::opening ||
                      m.state == phase::closed || m.state == phase::leaving);
}

void pool_state::take_next(time now) {
  // Models are loaded one at a time, since loads share the disk and the cores.
  while (const auto next = next_wanted()) {
    for (const auto& m : models_)
      if (m.state == phase::loading) return;
    auto& m = models_[*next];
    if (m.state == phase::opening || m.state == phase::leaving) return;
    if (m.state == phase::closed) {
      m.state = phase::opening;
      orders_.push_back(open{*next});
      return;
    }
    std::int64_t most = limits_.budget; // the most memory that the model can ever have
    for (const auto& other : models_)
      if (&other != &m && other.rules.pinned) most -= std::max(other.need, other.grant);
    const std::int64_t grant = std::min(m.need, most);
    if (grant <= 0) {
      fail(*next,
           "it needs " + format_bytes(m.need) + ", and the pinned models leave nothing of " +
               format_bytes(limits_.budget) + " (`device.memory`); pin fewer of them",
           now);
      continue;
    }
    if (!make_room(*next, grant, now)) return;
    m.state = phase::loading;
    m.grant = grant;
    m.load_began = now;
    m.detail.clear();
    orders_.push_back(load{*next, grant});
  }
}

/// Returns true if there is room for `grant` bytes. Otherwise it begins to make room.
bool pool_state::make_room(index wanted, std::int64_t grant, time now) {
  std::int64_t free = limits_.budget - granted();
  // Memory that pinned models will take is not available to others.
  for (const auto& other : models_)
    if (index_of(other) != wanted && other.rules.pinned && !holds_memory(other)) free -= other.need;
  if (free >= grant) return true;
  for (const auto& m : models_)
    if (m.state == phase::draining || m.state == phase::leaving) free += m.grant;
  while (free < grant) {
    one* victim = nullptr;
    for (auto& m : models_) // choose the least recently used model without a request
      if (m.state == phase::awake && !m.rules.pinned && m.under_way == 0 &&
          (victim == nullptr || m.last_used < victim->last_used))
        victim = &m;
    if (victim != nullptr) {
      free += victim->grant;
      start_leaving(*victim);
      continue;
    }
    for (auto& m : models_) { // otherwise choose the model that has been in memory longest
      if (m.state != phase::awake || m.rules.pinned) continue;
      const time may_go = m.awake_since + m.load_time;
      if (now < may_go)
        wake_by(may_go);
      else if (victim == nullptr || m.awake_since < victim->awake_since)
        victim = &m;
    }
    if (victim == nullptr) return false;
    free += victim->grant;
    victim->state = phase::draining;
    victim->by_order = false;
  }
  return false;
}

void pool_state::fail(index i, std::string why, time now) {
  auto& m = models_[i];
  m.state = phase::failed;
  m.begun = true;
  m.detail = std::move(why);
  m.by_order = m.forgotten = m.load_ordered = false;
  m.wanted.reset();
  duration delay = limits_.first_retry;
  for (int n = 0; n < m.failures && delay < limits_.most_retry; ++n)
    delay *= 2;
  ++m.failures;
  m.retry_at = now + std::min(delay, limits_.most_retry);
  refuse_waiting_for(m);
}

void pool_state::refuse_waiting_for(one& m) {
  if (std::exchange(m.waiting, 0) > 0) orders_.push_back(refuse_waiting{index_of(m)});
}

void pool_state::want(one& m) {
  if (!m.wanted) m.wanted = n_wanted_++;
}

void pool_state::wake_by(time at) {
  wake_at_ = wake_at_ ? std::min(*wake_at_, at) : at;
}

} // namespace twill::actors
