// stats_board: the counters and gauges of the engine, in one copy that all actors share.
//
// Thread safety: every function locks the one mutex. The batcher writes once per step, sessions a
// few times per request, and the supervisor sometimes; readers get a copy. Invariant: counters only
// grow. There is one entry for each pair of tenant and model; the tenant's name is empty if no
// tenants are configured. The client names of requests (request::client) have no entries.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "actors/port/engine_port.hpp"

namespace twill::actors {

/// Adds `n` equal observations to a histogram.
void observe(histogram& h, double value, std::uint64_t n = 1);

class stats_board {
public:
  stats_board();

  template <class F>
  void update(F&& change) {
    const std::lock_guard lock(mutex_);
    change(stats_);
  }
  engine_stats read() const;

  /// Sets the function with which read() measures how much of the device's reserved memory was
  /// never accessed; null: all of it counts as accessed. `measure` may be called on any thread.
  void set_untouched_bytes(std::function<std::int64_t()> measure) {
    const std::lock_guard lock(mutex_);
    untouched_bytes_ = std::move(measure);
  }

  template <class F>
  void update_tenant(const std::string& tenant, const std::string& model, F&& change) {
    const std::lock_guard lock(mutex_);
    change(entry_of(tenant, model));
  }
  std::vector<tenant_stats> read_tenants() const;

  /// The batcher waits for a step since `sent`; a default time point says that it waits for none.
  void watch_steps_from(std::chrono::steady_clock::time_point sent) {
    waits_since_.store(sent.time_since_epoch().count(), std::memory_order_relaxed);
  }
  /// How long the executor has not answered a step; 0 while no step is outstanding.
  std::chrono::steady_clock::duration step_age(std::chrono::steady_clock::time_point now) const {
    const auto since = waits_since_.load(std::memory_order_relaxed);
    if (since == 0) return {};
    return now.time_since_epoch() - std::chrono::steady_clock::duration(since);
  }

private:
  tenant_stats& entry_of(const std::string& tenant, const std::string& model);

  mutable std::mutex mutex_;
  engine_stats stats_;
  std::function<std::int64_t()> untouched_bytes_;
  std::map<std::pair<std::string, std::string>, tenant_stats> tenants_; ///< by tenant and model
  std::atomic<std::chrono::steady_clock::rep> waits_since_{0};
};

} // namespace twill::actors
