// open_sockets: counts the open sockets of clients, in total and per client, and refuses sockets
// beyond the limits.
//
// Thread safety: any thread may call all functions; one mutex is held for short sections. A slot
// stands for one counted socket. The socket's session owns the slot, which must not outlive the
// counter.
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
  /// `max_per_client` = 0 means no limit per client.
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
    /// Counts the socket for `client` from now on, for example when a proxy forwards the request of
    /// another client. Returns false, and changes nothing, if `client` has too many sockets.
    bool count_for(std::string client) {
      return owner_ != nullptr && owner_->recount(client_, std::move(client));
    }
    /// The client for which the socket is counted, or empty if it counts only towards the total.
    const std::string& client() const noexcept { return client_; }

  private:
    open_sockets* owner_;
    std::string client_;
  };

  /// Returns nothing if a limit is reached. A socket with an empty `client` counts only towards the
  /// total.
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
