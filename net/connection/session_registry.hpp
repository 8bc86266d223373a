// socket_session: one open socket, as the server sees it; session_registry: all of them.
//
// Thread safety: begin_drain() and close_now() may be called from any thread, they post to the
// session's strand. The registry has its own mutex and holds no session alive.
#pragma once

#include <array>
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

/// What is spoken on a socket now.
enum class socket_use : std::uint8_t {
  arriving, ///< a PROXY header or a TLS handshake
  http,
  websocket
};

class session_registry {
public:
  std::uint64_t add(std::weak_ptr<socket_session> one, socket_use use) {
    const std::lock_guard lock(mutex_);
    sessions_.emplace(++last_id_, entry{std::move(one), use});
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
  /// The sockets that are busy exist; each holds a slot of open_sockets, busy or not.
  void account(ledger& to) const {
    constexpr std::array names{"arriving sockets", "HTTP sockets", "WebSockets"};
    std::array<std::int64_t, names.size()> counts{};
    // A session whose last owner this is takes the mutex when it goes, so it outlives the lock.
    std::vector<std::shared_ptr<socket_session>> alive;
    const std::lock_guard lock(mutex_);
    alive.reserve(sessions_.size());
    for (const auto& [id, one] : sessions_) {
      auto session = one.session.lock();
      if (!session) continue;
      ++counts[static_cast<std::size_t>(one.use)];
      if (session->is_busy()) to.exists("socket " + std::to_string(id));
      alive.push_back(std::move(session));
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      to.exists(names[i], true);
      to.held("open sockets", names[i], counts[i]);
    }
  }
  std::vector<std::shared_ptr<socket_session>> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<socket_session>> alive;
    alive.reserve(sessions_.size());
    for (const auto& [id, entry] : sessions_)
      if (auto one = entry.session.lock()) alive.push_back(std::move(one));
    return alive;
  }

private:
  struct entry {
    std::weak_ptr<socket_session> session;
    socket_use use;
  };

  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, entry> sessions_;
  std::uint64_t last_id_ = 0;
};

} // namespace twill::net
