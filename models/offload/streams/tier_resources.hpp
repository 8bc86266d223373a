// tier_resources: what the tiers off the device are made of: the I/O threads, the file that
// streamed weights live in, and the account of host memory. An offline job has one of its own; in a
// daemon it belongs to the offloader actor, and streamed weights and KV blocks share it.
//
// Thread safety: every call from any thread. A weight_stream is the data plane over it: it holds
// the store while it lives, writes it while a model is loaded, and orders what it reads by tickets.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "models/errc.hpp"
#include "models/offload/streams/disk_store.hpp"
#include "models/offload/streams/io_threads.hpp"

namespace twill::models::offload {

struct offload_options;

/// How many bytes of a tier may be promised, to all who keep something there.
class tier_budget {
public:
  explicit tier_budget(std::int64_t limit_bytes) : limit_(limit_bytes) {}

  /// False, and nothing is taken, where so much is not free.
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
  /// The host's budget is what the machine has available now. `notifier`: see io_threads.
  explicit tier_resources(io_threads::order_notifier notifier = {});

  const std::shared_ptr<io_threads>& threads() const { return threads_; }
  tier_budget& host() { return host_; }

  /// Opens the disk tier of weights as `options` say, in place of the one before. It stays open
  /// until close_weight_store().
  result<std::shared_ptr<disk_store>> open_weight_store(const offload_options& options);
  void close_weight_store();

private:
  std::shared_ptr<io_threads> threads_;
  tier_budget host_;
  std::mutex mutex_; ///< of the store's pointer
  std::shared_ptr<disk_store> weights_;
};

} // namespace twill::models::offload
