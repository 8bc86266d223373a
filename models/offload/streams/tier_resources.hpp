// tier_resources: the resources for weights and KV that are kept in host memory or on disk: the I/O
// threads, the file of streamed weights, and the budget of host memory. An offline job creates its
// own tier_resources. In a daemon the supervisor owns one, which streamed weights and KV
// blocks share.
//
// Thread safety: every function may be called from any thread. A weight_stream does the reading and
// writing: it keeps the file's disk_store open during its lifetime, writes to it while a model is
// loaded, and reads from it on the I/O threads.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "models/errc.hpp"
#include "models/offload/streams/disk_store.hpp"
#include "models/offload/streams/io_threads.hpp"

namespace twill::models::offload {

struct offload_options;

/// Limits the bytes that all users of a tier together may keep there.
class tier_budget {
public:
  explicit tier_budget(std::int64_t limit_bytes) : limit_(limit_bytes) {}

  /// Takes `bytes` from the budget. Returns false and takes nothing if fewer bytes are free.
  bool take(std::int64_t bytes);
  void give_back(std::int64_t bytes);
  std::int64_t taken() const;
  std::int64_t free() const;

private:
  mutable std::mutex mutex_;
  std::int64_t limit_;
  std::int64_t taken_ = 0;
};

class tier_resources {
public:
  /// The budget of host memory is the memory that the machine has available when this constructor
  /// is called.
  tier_resources();

  const std::shared_ptr<io_threads>& threads() const { return threads_; }
  tier_budget& host() { return host_; }

  /// Opens the store of the weights' disk tier according to `options`. It replaces the store that
  /// was opened before, and stays open until close_weight_store().
  result<std::shared_ptr<disk_store>> open_weight_store(const offload_options& options);
  void close_weight_store();

private:
  std::shared_ptr<io_threads> threads_;
  tier_budget host_;
  std::mutex mutex_; ///< guards weights_
  std::shared_ptr<disk_store> weights_;
};

} // namespace twill::models::offload
