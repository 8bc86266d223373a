// socket_session: the interface through which the server controls one open socket.
// session_registry: the list of all open sockets.
//
// Thread safety: begin_drain() and close_now() may be called from any thread; they post to the
// session's strand. The registry has its own mutex and does not keep sessions alive.
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
  /// The session accepts no new requests, and closes when its running requests have ended.
  virtual void begin_drain() = 0;
  virtual void close_now() = 0;
  /// Returns whether part of a request or of a response is being processed on the socket. Any
  /// thread may call this.
  bool is_busy() const noexcept { return busy_.load(std::memory_order_relaxed); }

protected:
  void set_busy(bool busy) noexcept { busy_.store(busy, std::memory_order_relaxed); }

private:
  std::atomic<bool> busy_{false};
};

/// The protocol that a socket is in at present.
enum class socket_use : std::uint8_t {
  arriving, ///< reading a PROXY header or in a TLS handshake
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
  /// Adds all sockets to the ledger `to` (config/base/ledger.hpp), which compares their number with
  /// the count of open_sockets. For a socket that processes a request, the ledger's exists() is
  /// called too, which shows that the server is not at rest (ledger::is_at_rest()).
  void account(ledger& to) const {
    constexpr std::array names{"arriving sockets", "HTTP sockets", "WebSockets"};
    std::array<std::int64_t, names.size()> counts{};
    // If `alive` has the last pointer to a session, the session's destructor locks `mutex_`, so
    // `alive` must be destroyed after `lock`.
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
