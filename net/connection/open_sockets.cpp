#include "net/connection/open_sockets.hpp"

namespace twill::net {

std::optional<open_sockets::ticket> open_sockets::admit(std::string client) {
  if (max_per_client_ == 0) client.clear();
  const std::lock_guard lock(mutex_);
  if (count_ >= max_all_) return std::nullopt;
  if (!client.empty()) {
    auto& of_client = per_client_[client];
    if (of_client >= max_per_client_) return std::nullopt;
    ++of_client;
  }
  ++count_;
  return ticket(*this, std::move(client));
}

std::int64_t open_sockets::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

void open_sockets::release(const std::string& client) {
  const std::lock_guard lock(mutex_);
  --count_;
  if (client.empty()) return;
  const auto found = per_client_.find(client);
  if (--found->second == 0) per_client_.erase(found);
}

} // namespace twill::net
