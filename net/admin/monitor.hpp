// monitor: the figures that dashboards show: sampled by one timer, however many look on, and kept
// for an hour.
//
// Thread safety: every function locks; wakers are called without the lock. The monitor outlives its
// subscriptions. Without dashboards no frame is composed.
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

/// What was so at one moment.
struct server_snapshot {
  std::uint64_t number = 0; ///< of the sample, from 1 on
  actors::engine_state state = actors::engine_state::loading;
  std::string detail; ///< why not ready
  history_row row;
  std::vector<actors::model_info> models;
  std::vector<actors::model_stats> stats;
  std::vector<actors::tenant_stats> tenants;
};

/// A frame of type "sample": see net/admin/README.md. At most so many models and tenants are in it;
/// the busiest tenants come first.
inline constexpr std::size_t max_shown_models = 64;
inline constexpr std::size_t max_shown_tenants = 100;
std::string sample_frame(const server_snapshot& of);

class monitor {
public:
  /// `open_sockets` gives the sockets of clients; any thread.
  monitor(const actors::engine_port& engine, std::function<std::int64_t()> open_sockets)
      : engine_(engine), open_sockets_(std::move(open_sockets)) {}
  monitor(const monitor&) = delete;
  monitor& operator=(const monitor&) = delete;

  /// Reads the engine's figures, keeps them, and wakes those who look on.
  void sample(std::int64_t unix_ms);

  struct frame {
    std::uint64_t number = 0; ///< of the newest sample in it; 0: nothing was sampled yet
    std::shared_ptr<const std::string> text;
  };
  /// The hour that is kept, as a frame of type "history".
  frame history() const;
  /// The newest sample.
  frame latest() const;

  /// Until its end, a sample wakes the subscriber. A waker may still be called for a moment after.
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
  mutable std::shared_ptr<const std::string> text_; ///< of `newest_`, once somebody asked for it
  std::map<std::uint64_t, waker> wakers_;
  std::uint64_t next_id_ = 1;
};

} // namespace twill::net
