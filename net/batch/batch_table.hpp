// batch_table: all batches of the server, bounded in number.
//
// Thread safety: any thread; one mutex, short sections. Readers get copies. When the
// table is full, batches that have ended are forgotten, the oldest of whoever has most of them
// first.
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

  /// Adds a batch, unless too many are under way, of all tenants or of its own. `forgotten` becomes
  /// the id of the one that made room for it.
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

  /// Adds a batch of an earlier run, after those that were made before it. False when the table is
  /// full of batches that are under way.
  bool restore(batch earlier, std::string* forgotten = nullptr) {
    const std::lock_guard lock(mutex_);
    if (all_.size() >= max_batches && !forget_oldest(forgotten)) return false;
    last_number_ = std::max(last_number_, earlier.number);
    all_.push_back(std::move(earlier));
    return true;
  }

  /// Forgets a batch, whatever its status.
  void remove(const std::string& id) {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [&](const batch& entry) { return entry.id == id; });
  }

  /// Any tenant's batch.
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

  /// The status of any tenant's batch; none when it has been forgotten.
  std::optional<batch_status> status_of(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    for (const auto& entry : all_)
      if (entry.id == id) return entry.status;
    return std::nullopt;
  }

  /// Oldest first.
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

  /// `change` runs under the mutex; nothing happens when the batch has been forgotten.
  template <class Change>
  void update(const std::string& id, Change change) {
    const std::lock_guard lock(mutex_);
    for (auto& entry : all_)
      if (entry.id == id) return change(entry);
  }

private:
  /// Forgets the oldest batch that has ended, if one has.
  bool forget_oldest(std::string* forgotten) {
    const auto oldest = oldest_ended();
    if (oldest == all_.end()) return false;
    if (forgotten != nullptr) *forgotten = oldest->id;
    all_.erase(oldest);
    return true;
  }

  /// Of the tenant that has most of those that ended, so that no tenant's flood makes the server
  /// forget what others' batches came to.
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
