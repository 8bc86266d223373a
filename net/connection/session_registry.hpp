// socket_session: one open socket, as the server sees it; session_registry: all of them.
//
// Thread safety: begin_drain() and close_now() may be called from any thread, they post to the
// session's strand. The registry has its own mutex and holds no session alive.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "config/base/ledger.hpp"

namespace twill::net {

class socket_session {
public:
  virtual ~socket_session() = default;
  /// Accepts no new requests, and closes once those that run have ended.
  virtual void begin_drain() = 0;
  virtual void close_now() = 0;
  /// Something of a request or of an answer is under way on it. Any thread.
  bool is_busy() const noexcept { return busy_.load(std::memory_order_relaxed); }

protected:
  void set_busy(bool busy) noexcept { busy_.store(busy, std::memory_order_relaxed); }

private:
  std::atomic<bool> busy_{false};
};

class session_registry {
public:
  std::uint64_t add(std::weak_ptr<socket_session> one) {
    const std::lock_guard lock(mutex_);
    sessions_.emplace(++last_id_, std::move(one));
    return last_id_;
  }
  void remove(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    sessions_.erase(id);
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return sessions_.size();
  }
  /// The sockets that are busy exist.
  void account(ledger& to) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, session] : sessions_)
      if (const auto one = session.lock(); one && one->is_busy())
        to.exists("socket " + std::to_string(id));
  }
  std::vector<std::shared_ptr<socket_session>> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<socket_session>> alive;
    alive.reserve(sessions_.size());
    for (const auto& entry : sessions_)
      if (auto one = entry.second.lock()) alive.push_back(std::move(one));
    return alive;
  }

private:
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::weak_ptr<socket_session>> sessions_;
  std::uint64_t last_id_ = 0;
};

} // namespace twill::net
