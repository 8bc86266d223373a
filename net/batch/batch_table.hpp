// batch_table: all batches of the server, bounded in number.
//
// Thread safety: any thread; one mutex, short sections. Readers get copies. When the
// table is full, batches that have ended are forgotten, the oldest first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/batch/batch.hpp"

namespace twill::net {

class batch_table {
public:
  static constexpr std::size_t max_active = 100;
  static constexpr std::size_t max_batches = 1000;

  /// False when too many batches are under way.
  bool add(batch created) {
    const std::lock_guard lock(mutex_);
    const auto ended = [](const batch& entry) { return is_final(entry.status); };
    const auto n_ended = static_cast<std::size_t>(std::count_if(all_.begin(), all_.end(), ended));
    if (all_.size() - n_ended >= max_active) return false;
    if (all_.size() >= max_batches) all_.erase(std::find_if(all_.begin(), all_.end(), ended));
    all_.push_back(std::move(created));
    return true;
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

  /// `change` runs under the mutex; nothing happens when the batch has been forgotten.
  template <class Change>
  void update(const std::string& id, Change change) {
    const std::lock_guard lock(mutex_);
    for (auto& entry : all_)
      if (entry.id == id) return change(entry);
  }

private:
  mutable std::mutex mutex_;
  std::deque<batch> all_;
};

} // namespace twill::net
