// batch_table: all batches of the server, in bounded number.
//
// Thread safety: any thread may call all functions; one mutex is held for short sections. Readers
// get copies. When the table is full, it forgets a batch that has ended: the oldest one of the
// tenant that has the most ended batches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "config/base/ledger.hpp"
#include "net/batch/batch.hpp"

namespace twill::net {

class batch_table {
public:
  static constexpr std::size_t max_active = 100;
  static constexpr std::size_t max_batches = 1000;

  enum class added { yes, too_many, too_many_of_tenant };

  /// Adds a batch, unless too many batches are running, in total or of its tenant
  /// (`most_of_tenant`). `*forgotten` becomes the id of the batch that was removed to make room, if
  /// any.
  added add(batch created, std::size_t most_of_tenant, std::string* forgotten = nullptr) {
    const std::lock_guard lock(mutex_);
    std::size_t n_active = 0, n_of_tenant = 0;
    for (const auto& entry : all_) {
      if (is_final(entry.status)) continue;
      ++n_active;
      if (entry.tenant == created.tenant) ++n_of_tenant;
    }
    if (n_active >= max_active) return added::too_many;
    if (n_of_tenant >= most_of_tenant) return added::too_many_of_tenant;
    if (all_.size() >= max_batches) forget_oldest(forgotten);
    created.number = ++last_number_;
    all_.push_back(std::move(created));
    return added::yes;
  }

  /// Adds a batch of an earlier run. Batches must be restored in the order in which they were
  /// created. Returns false if the table is full of running batches.
  bool restore(batch earlier, std::string* forgotten = nullptr) {
    const std::lock_guard lock(mutex_);
    if (all_.size() >= max_batches && !forget_oldest(forgotten)) return false;
    last_number_ = std::max(last_number_, earlier.number);
    all_.push_back(std::move(earlier));
    return true;
  }

  /// Removes a batch, whatever its status is.
  void remove(const std::string& id) {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [&](const batch& entry) { return entry.id == id; });
  }

  /// Finds a batch of any tenant.
  std::optional<batch> get(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    for (const auto& entry : all_)
      if (entry.id == id) return entry;
    return std::nullopt;
  }

  std::optional<batch> find(const std::string& id, const std::string& tenant) const {
    const std::lock_guard lock(mutex_);
    for (const auto& entry : all_)
      if (entry.id == id && entry.tenant == tenant) return entry;
    return std::nullopt;
  }

  /// Returns the status of a batch of any tenant, or nothing if the table has forgotten the batch.
  std::optional<batch_status> status_of(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    for (const auto& entry : all_)
      if (entry.id == id) return entry.status;
    return std::nullopt;
  }

  /// Lists the tenant's batches, oldest first.
  std::vector<batch> list(const std::string& tenant) const {
    const std::lock_guard lock(mutex_);
    std::vector<batch> out;
    for (const auto& entry : all_)
      if (entry.tenant == tenant) out.push_back(entry);
    return out;
  }

  static constexpr const char* under_way = "batches under way";
  void account(ledger& to) const {
    const std::lock_guard lock(mutex_);
    to.taken(under_way, std::count_if(all_.begin(), all_.end(),
                                      [](const batch& entry) { return !is_final(entry.status); }));
  }

  /// Calls `change` under the mutex. Nothing happens if the table has forgotten the batch.
  template <class Change>
  void update(const std::string& id, Change change) {
    const std::lock_guard lock(mutex_);
    for (auto& entry : all_)
      if (entry.id == id) return change(entry);
  }

private:
  /// Removes the ended batch that oldest_ended() selects. Returns false if there is none.
  bool forget_oldest(std::string* forgotten) {
    const auto oldest = oldest_ended();
    if (oldest == all_.end()) return false;
    if (forgotten != nullptr) *forgotten = oldest->id;
    all_.erase(oldest);
    return true;
  }

  /// Selects the oldest ended batch of the tenant that has the most ended batches, so that a tenant
  /// with very many batches cannot make the server forget the results of other tenants.
  std::deque<batch>::iterator oldest_ended() {
    std::unordered_map<std::string, std::size_t> n_ended;
    std::size_t most = 0;
    for (const auto& entry : all_)
      if (is_final(entry.status)) most = std::max(most, ++n_ended[entry.tenant]);
    return std::find_if(all_.begin(), all_.end(), [&](const batch& entry) {
      return is_final(entry.status) && n_ended[entry.tenant] == most;
    });
  }

  mutable std::mutex mutex_;
  std::deque<batch> all_;
  std::int64_t last_number_ = 0;
};

} // namespace twill::net
