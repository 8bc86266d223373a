// open_sockets: counts the sockets of clients, over all and per client, and refuses those beyond.
//
// Thread safety: any thread; one mutex, short sections. A slot is one counted socket; it travels
// with the socket's session and must not outlive the counter.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace twill::net {

class open_sockets {
public:
  /// `max_per_client` 0: no limit.
  open_sockets(std::int64_t max_all, std::int64_t max_per_client)
      : max_all_(max_all), max_per_client_(max_per_client) {}
  open_sockets(const open_sockets&) = delete;
  open_sockets& operator=(const open_sockets&) = delete;

  class slot {
  public:
    slot(open_sockets& owner, std::string client) : owner_(&owner), client_(std::move(client)) {}
    slot(slot&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), client_(std::move(other.client_)) {}
    slot& operator=(slot&&) = delete;
    ~slot() {
      if (owner_ != nullptr) owner_->release(client_);
    }
    /// Counts the socket for this client from now on, as when a proxy passes on another's request.
    /// False, and nothing changes, when that client has too many.
    bool count_for(std::string client) {
      return owner_ != nullptr && owner_->recount(client_, std::move(client));
    }
    /// Whom the socket is counted for; empty: nobody in particular.
    const std::string& client() const noexcept { return client_; }

  private:
    open_sockets* owner_;
    std::string client_;
  };

  /// Nothing when a limit is reached. An empty `client` counts only over all.
  std::optional<slot> admit(std::string client);
  std::int64_t count() const;

private:
  void release(const std::string& client);
  bool recount(std::string& from, std::string to);
  bool add(const std::string& client);
  void remove(const std::string& client);

  const std::int64_t max_all_;
  const std::int64_t max_per_client_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::int64_t> per_client_;
  std::int64_t count_ = 0;
};

} // namespace twill::net
