// plain_live_requests: a reference for live_requests, the table of an engine's live requests. The
// reference keeps a list of requests, and counts anew for every answer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/detail/live_requests.hpp"
#include "tests/actors/detail/plain_drain_rate.hpp"

namespace twill::actors {

class plain_live_requests {
public:
  using time = steady_clock::time_point;

  struct row {
    request_id id = 0;
    std::string client;
    std::size_t most_of_client = 0;
    std::int64_t bytes = 0;
    bool paused = false;
  };
  struct deadline {
    time at;
    request_id id = 0;
    bool waited = false;
  };

  explicit plain_live_requests(const live_requests::limits& bounds) : bounds_(bounds) {}

  /// Returns a word of the reason why the request is refused, or an empty text.
  std::string insert(request_id id, const live_requests::entry& added, time now) {
    const auto live = count([](const row& one) { return !one.paused; });
    const auto of_client = count([&](const row& one) { return one.client == added.client; });
    const auto live_of_client =
        count([&](const row& one) { return one.client == added.client && !one.paused; });
    std::string refused;
    if (added.most_of_client > 0 && live_of_client >= added.most_of_client)
      refused = "tenants.max_queued";
    else if (live >= bounds_.live)
      refused = "scheduler.max_queued";
    else if (added.client != "" && of_client >= 7 * (bounds_.live - live))
      refused = "this client";
    else if (bytes() + added.bytes > bounds_.bytes)
      refused = "scheduler.max_prompts";
    arrives(drain_, refused, live, bounds_.live, now);
    if (const auto own = drains_.find(added.client); own != drains_.end())
      arrives(own->second, refused, live_of_client, added.most_of_client, now);
    rows.push_back({id, added.client, added.most_of_client, added.bytes, false});
    if (added.deadline) deadlines.push_back({*added.deadline, id, false});
    if (added.queue_deadline) deadlines.push_back({*added.queue_deadline, id, true});
    return refused;
  }

  void erase(request_id id, bool was_queued, time now) {
    const row* gone = find(id);
    if (gone == nullptr) return;
    if (was_queued) drain_.left(now);
    if (was_queued && gone->most_of_client > 0) drains_[gone->client].left(now);
    std::erase_if(rows, [&](const row& one) { return one.id == id; });
    std::erase_if(deadlines, [&](const deadline& one) { return one.id == id; });
  }

  /// Returns the request that must end because of this pause; 0: none.
  request_id pause(request_id id) {
    row* one = find(id);
    if (one == nullptr) return 0;
    one->paused = true;
    std::int64_t paused_bytes = 0;
    std::map<std::string, std::size_t> paused_of;
    for (const row& each : rows) {
      if (!each.paused) continue;
      paused_bytes += each.bytes;
      paused_of[each.client] += 1;
    }
    if (count([](const row& each) { return each.paused; }) <= bounds_.paused &&
        paused_bytes <= bounds_.bytes / 4)
      return 0;
    std::string most;
    std::size_t n = 0;
    for (const auto& [client, n_paused] : paused_of) {
      if (n_paused <= n) continue;
      n = n_paused;
      most = client;
    }
    request_id latest = 0;
    for (const row& each : rows)
      if (each.paused && each.client == most) latest = std::max(latest, each.id);
    find(latest)->paused = false;
    return latest;
  }
  void resume(request_id id) {
    if (row* one = find(id)) one->paused = false;
  }

  void clear() {
    rows.clear();
    deadlines.clear();
  }

  std::vector<deadline> take_expired(time now) {
    std::stable_sort(deadlines.begin(), deadlines.end(),
                     [](const deadline& a, const deadline& b) { return a.at < b.at; });
    std::vector<deadline> passed;
    std::copy_if(deadlines.begin(), deadlines.end(), std::back_inserter(passed),
                 [now](const deadline& one) { return one.at <= now; });
    std::erase_if(deadlines, [now](const deadline& one) { return one.at <= now; });
    return passed;
  }

  std::vector<std::int32_t> retry_after_s(const std::string& client, time now) {
    const auto own = drains_.find(client);
    return (own == drains_.end() ? drain_ : own->second).retry_after_s(now);
  }

  row* find(request_id id) {
    for (row& one : rows)
      if (one.id == id) return &one;
    return nullptr;
  }

  std::vector<row> rows;
  std::vector<deadline> deadlines;

private:
  std::size_t count(const std::function<bool(const row&)>& which) const {
    return static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), which));
  }
  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const row& one : rows)
      sum += one.bytes;
    return sum;
  }
  static void arrives(plain_drain_rate& rate, const std::string& refused, std::size_t n_before,
                      std::size_t most, time now) {
    if (n_before == 0) rate.resume(now);
    if (refused.empty() && n_before + n_before < most) rate.forget_turns();
  }

  live_requests::limits bounds_;
  plain_drain_rate drain_;
  std::map<std::string, plain_drain_rate> drains_;
};

} // namespace twill::actors
