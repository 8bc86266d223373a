// plain_pool: a reference for pool_state, which decides which of several models have their weights
// in memory. The reference is written for clarity and not for speed.
//
// It keeps the models that wait to be loaded in one list, in the order in which they began to wait,
// sorts all candidates where pool_state searches for the best, and writes its decisions as text.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/pool/pool_state.hpp"

namespace twill::actors {

class plain_pool {
public:
  using phase = pool_state::phase;
  using verdict = pool_state::verdict;
  using time = pool_state::time;
  using duration = pool_state::duration;

  struct model {
    pool_state::model_rules rules;
    phase state = phase::closed;
    std::int64_t need = 0, grant = 0;
    std::size_t under_way = 0, waiting = 0;
    bool load_ordered = false, sleep_ordered = false, close_ordered = false;
    bool begun = false;
    std::string why; ///< why the model failed
    int failures_in_a_row = 0;
    time used{}, load_began{}, awake_since{}, refuses_until{};
    duration load_took{0};
  };

  plain_pool(const std::vector<pool_state::model_rules>& rules, const pool_state::limits& bounds)
      : bounds_(bounds) {
    for (const auto& one : rules)
      models.push_back({.rules = one});
  }

  void begin(time now) {
    for (std::size_t m = 0; m < models.size(); ++m) {
      models[m].load_ordered = models[m].rules.pinned;
      if (models[m].rules.pinned) join(m);
      models[m].state = phase::opening;
      order("open", m);
    }
    decide(now);
  }

  void fetching(std::size_t m, time now) {
    if (models[m].state != phase::opening) return;
    models[m].state = phase::fetching;
    models[m].begun = true;
    if (!models[m].load_ordered) quit(m);
    refuse_all(m);
    decide(now);
  }

  void opened(std::size_t m, std::int64_t need, time now) {
    if (models[m].state != phase::opening && models[m].state != phase::fetching) return;
    models[m].need = std::max<std::int64_t>(0, need);
    models[m].why.clear();
    if (!models[m].rules.pinned) models[m].begun = true;
    const bool closes = models[m].close_ordered && !in_line(m);
    models[m].close_ordered = false;
    models[m].state = closes ? phase::closed : phase::asleep;
    if (closes) order("close", m);
    decide(now);
  }

  void open_failed(std::size_t m, const std::string& why, time now) {
    if (models[m].state != phase::opening && models[m].state != phase::fetching) return;
    fail(m, why, now);
    decide(now);
  }

  void loaded(std::size_t m, time now) {
    model& one = models[m];
    if (one.state != phase::loading) return;
    one.state = one.sleep_ordered ? phase::draining : phase::awake;
    one.begun = true;
    one.failures_in_a_row = 0;
    one.load_took = now - one.load_began;
    one.awake_since = one.used = now;
    one.load_ordered = false;
    quit(m);
    send_all(m);
    decide(now);
  }

  void load_failed(std::size_t m, const std::string& why, time now) {
    if (models[m].state != phase::loading) return;
    models[m].grant = 0;
    order("close", m);
    fail(m, why, now);
    decide(now);
  }

  void left(std::size_t m, time now) {
    model& one = models[m];
    if (one.state != phase::leaving) return;
    one.grant = 0;
    one.state = one.close_ordered ? phase::closed : phase::asleep;
    if (one.close_ordered) order("close", m);
    one.close_ordered = one.sleep_ordered = false;
    decide(now);
  }

  verdict asked(std::size_t m, time now) {
    model& one = models[m];
    if (one.state == phase::awake) {
      one.under_way += 1;
      one.used = now;
      return verdict::send;
    }
    if (one.state == phase::fetching) return verdict::refuse;
    if (one.state == phase::failed && now < one.refuses_until) return verdict::refuse;
    if (one.state == phase::failed) one.state = phase::closed;
    one.waiting += 1;
    join(m);
    decide(now);
    return one.state == phase::failed ? verdict::refuse : verdict::wait;
  }

  void ended(std::size_t m, time now) {
    if (models[m].under_way > 0) models[m].under_way -= 1;
    models[m].used = now;
    decide(now);
  }

  void gave_up(std::size_t m, time now) {
    if (models[m].waiting > 0) models[m].waiting -= 1;
    if (models[m].waiting == 0 && !models[m].load_ordered) quit(m);
    decide(now);
  }

  void ask_load(std::size_t m, time now) {
    model& one = models[m];
    one.sleep_ordered = one.close_ordered = false;
    if (one.state == phase::failed) one.state = phase::closed;
    if (one.state != phase::awake && one.state != phase::loading) {
      one.load_ordered = true;
      join(m);
    }
    decide(now);
  }

  void ask_sleep(std::size_t m, time now) {
    model& one = models[m];
    one.load_ordered = false;
    if (one.waiting == 0) quit(m);
    if (one.state == phase::awake) one.state = phase::draining;
    one.sleep_ordered = one.state == phase::draining || one.state == phase::loading;
    decide(now);
  }

  void ask_unload(std::size_t m, time now) {
    model& one = models[m];
    if (one.state == phase::asleep) order("close", m);
    if (one.state == phase::asleep || one.state == phase::failed) {
      one.state = phase::closed;
      one.why.clear();
    }
    one.close_ordered =
        has_memory(m) || one.state == phase::opening || one.state == phase::fetching;
    ask_sleep(m, now);
  }

  void woken(time now) { decide(now); }

  bool begun() const {
    return std::all_of(models.begin(), models.end(), [](const model& one) { return one.begun; });
  }
  std::int64_t granted() const {
    std::int64_t sum = 0;
    for (const model& one : models)
      sum += one.grant;
    return sum;
  }

  std::vector<model> models;
  std::vector<std::string> orders; ///< orders since the test last cleared them
  std::optional<time> wake_at;

private:
  bool has_memory(std::size_t m) const {
    const phase state = models[m].state;
    return state == phase::loading || state == phase::awake || state == phase::draining ||
           state == phase::leaving;
  }

  void order(const std::string& what, std::size_t m) {
    orders.push_back(what + " " + std::to_string(m));
  }

  // The list of models that are to be loaded.
  bool in_line(std::size_t m) const { return std::count(line_.begin(), line_.end(), m) > 0; }
  void join(std::size_t m) {
    if (!in_line(m)) line_.push_back(m);
  }
  void quit(std::size_t m) { std::erase(line_, m); }
  /// The first model of the list that can be loaded now, pinned ones before others. Models that are
  /// in memory or being fetched are skipped, as nothing can be done for them yet.
  std::optional<std::size_t> first_in_line() const {
    for (const bool pinned : {true, false})
      for (const std::size_t m : line_) {
        const phase state = models[m].state;
        const bool can_come = state == phase::closed || state == phase::opening ||
                              state == phase::asleep || state == phase::leaving;
        if (can_come && models[m].rules.pinned == pinned) return m;
      }
    return std::nullopt;
  }

  void send_all(std::size_t m) {
    if (models[m].waiting == 0) return;
    models[m].under_way += models[m].waiting;
    models[m].waiting = 0;
    order("send", m);
  }
  void refuse_all(std::size_t m) {
    if (models[m].waiting > 0) order("refuse", m);
    models[m].waiting = 0;
  }
  void leave(std::size_t m) {
    models[m].state = phase::leaving;
    order("leave", m);
  }

  void fail(std::size_t m, const std::string& why, time now) {
    model& one = models[m];
    one.state = phase::failed;
    one.begun = true;
    one.why = why;
    one.load_ordered = one.sleep_ordered = one.close_ordered = false;
    quit(m);
    duration pause = bounds_.first_retry * (1 << std::min(one.failures_in_a_row, 20));
    one.failures_in_a_row += 1;
    one.refuses_until = now + std::min(pause, bounds_.most_retry);
    refuse_all(m);
  }

  void decide(time now) {
    wake_at.reset();
    for (std::size_t m = 0; m < models.size(); ++m)
      if (models[m].under_way == 0) leave_unused(m, now);
    while (load_next(now)) {
    }
    for (std::size_t m = 0; m < models.size(); ++m) {
      const phase state = models[m].state;
      if ((state == phase::asleep || state == phase::closed) && !in_line(m)) models[m].begun = true;
    }
    if (first_in_line()) return;
    for (std::size_t m = 0; m < models.size(); ++m) {
      if (models[m].state != phase::draining || models[m].sleep_ordered) continue;
      models[m].state = phase::awake; // no other model needs this memory any more
      models[m].load_ordered = false;
      quit(m);
      send_all(m);
    }
  }

  void leave_unused(std::size_t m, time now) {
    const model& one = models[m];
    if (one.state == phase::draining) leave(m);
    if (one.state != phase::awake || one.rules.pinned || one.rules.keep_alive.count() == 0) return;
    const time end = one.used + one.rules.keep_alive;
    if (end <= now)
      leave(m);
    else
      wake(end);
  }

  void wake(time at) {
    if (!wake_at || at < *wake_at) wake_at = at;
  }

  /// Returns true if the first model in the line failed, so that the next one may be loaded.
  bool load_next(time now) {
    const auto first = first_in_line();
    if (!first) return false;
    for (const model& one : models)
      if (one.state == phase::loading) return false;
    model& next = models[*first];
    if (next.state == phase::closed) {
      next.state = phase::opening;
      order("open", *first);
      return false;
    }
    if (next.state != phase::asleep) return false;
    std::int64_t most = bounds_.budget;
    for (std::size_t m = 0; m < models.size(); ++m)
      if (m != *first && models[m].rules.pinned) most -= std::max(models[m].need, models[m].grant);
    const std::int64_t grant = std::min(next.need, most);
    if (grant <= 0) {
      fail(*first, "no room", now);
      return true;
    }
    if (!has_room(*first, grant, now)) return false;
    next.state = phase::loading;
    next.grant = grant;
    next.load_began = now;
    next.why.clear();
    order("load " + std::to_string(grant) + " for", *first);
    return false;
  }

  bool has_room(std::size_t first, std::int64_t grant, time now) {
    std::int64_t room = bounds_.budget - granted();
    for (std::size_t m = 0; m < models.size(); ++m)
      if (m != first && models[m].rules.pinned && !has_memory(m)) room -= models[m].need;
    if (room >= grant) return true;
    std::vector<std::size_t> unused, used;
    for (std::size_t m = 0; m < models.size(); ++m) {
      const model& one = models[m];
      if (one.state == phase::draining || one.state == phase::leaving) room += one.grant;
      if (one.state != phase::awake || one.rules.pinned) continue;
      (one.under_way == 0 ? unused : used).push_back(m);
    }
    std::stable_sort(unused.begin(), unused.end(), [this](std::size_t a, std::size_t b) {
      return models[a].used < models[b].used;
    });
    for (const std::size_t m : unused) {
      if (room >= grant) return false;
      leave(m);
      room += models[m].grant;
    }
    if (room >= grant) return false;
    std::erase_if(used, [&](std::size_t m) {
      const time may_go = models[m].awake_since + models[m].load_took;
      if (may_go > now) wake(may_go);
      return may_go > now;
    });
    std::stable_sort(used.begin(), used.end(), [this](std::size_t a, std::size_t b) {
      return models[a].awake_since < models[b].awake_since;
    });
    for (const std::size_t m : used) {
      if (room >= grant) return false;
      models[m].state = phase::draining;
      models[m].sleep_ordered = false;
      room += models[m].grant;
    }
    return false;
  }

  pool_state::limits bounds_;
  std::vector<std::size_t> line_;
};

} // namespace twill::actors
