// monitor: the metrics that dashboards show. One timer takes the samples, however many dashboards
// are connected, and the samples are kept for an hour.
//
// Thread safety: every function locks the mutex; the callbacks of subscriptions are called without
// the lock. The monitor must outlive its subscriptions. The JSON text of a sample is made only when
// a dashboard asks for it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "actors/port/engine_port.hpp"
#include "net/admin/metrics_history.hpp"

namespace twill::net {

/// The server's state at one moment.
struct server_snapshot {
  std::uint64_t number = 0; ///< number of the sample, counted from 1
  actors::engine_state state = actors::engine_state::loading;
  std::string detail; ///< why the engine is not ready
  history_row row;
  std::vector<actors::model_info> models;
  std::vector<actors::model_stats> stats;
  std::vector<actors::tenant_stats> tenants;
};

/// The largest numbers of models and tenants that one frame of type "sample" describes.
inline constexpr std::size_t max_shown_models = 64;
inline constexpr std::size_t max_shown_tenants = 100;
/// Makes a frame of type "sample" (see net/admin/README.md); the busiest tenants come first in it.
std::string sample_frame(const server_snapshot& of);

class monitor {
public:
  /// `open_sockets` returns the number of client sockets; any thread may call it.
  monitor(const actors::engine_port& engine, std::function<std::int64_t()> open_sockets)
      : engine_(engine), open_sockets_(std::move(open_sockets)) {}
  monitor(const monitor&) = delete;
  monitor& operator=(const monitor&) = delete;

  /// Reads the engine's metrics, stores them, and wakes all subscribers.
  void sample(std::int64_t unix_ms);

  struct frame {
    /// Number of the newest sample in the frame; 0: no sample was taken yet.
    std::uint64_t number = 0;
    std::shared_ptr<const std::string> text;
  };
  /// Returns the samples of the last hour as a frame of type "history".
  frame history() const;
  /// Returns the newest sample as a frame of type "sample".
  frame latest() const;

  /// While a subscription exists, sample() calls the callback that was given to subscribe(). The
  /// callback may still be called for a moment after the subscription has ended.
  class subscription {
  public:
    subscription() = default;
    subscription(monitor& owner, std::uint64_t id) : owner_(&owner), id_(id) {}
    subscription(subscription&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), id_(other.id_) {}
    subscription& operator=(subscription&&) = delete;
    ~subscription() {
      if (owner_ != nullptr) owner_->leave(id_);
    }

  private:
    monitor* owner_ = nullptr;
    std::uint64_t id_ = 0;
  };
  using waker = std::function<void()>;
  subscription subscribe(waker wake);
  std::size_t subscribers() const;

private:
  void leave(std::uint64_t id);

  const actors::engine_port& engine_;
  const std::function<std::int64_t()> open_sockets_;
  mutable std::mutex mutex_;
  metrics_history history_;
  server_snapshot newest_;
  /// The frame of `newest_`, made when it is requested for the first time.
  mutable std::shared_ptr<const std::string> text_;
  std::map<std::uint64_t, waker> wakers_;
  std::uint64_t next_id_ = 1;
};

} // namespace twill::net
