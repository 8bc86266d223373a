#include "net/connection/open_sockets.hpp"

namespace twill::net {

std::optional<open_sockets::slot> open_sockets::admit(std::string client) {
  if (max_per_client_ == 0) client.clear();
  const std::lock_guard lock(mutex_);
  if (count_ >= max_all_) return std::nullopt;
  if (!add(client)) return std::nullopt;
  ++count_;
  return slot(*this, std::move(client));
}

std::int64_t open_sockets::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

bool open_sockets::recount(std::string& from, std::string to) {
  if (max_per_client_ == 0 || from == to) return true;
  const std::lock_guard lock(mutex_);
  if (!add(to)) return false;
  remove(from);
  from = std::move(to);
  return true;
}

void open_sockets::release(const std::string& client) {
  const std::lock_guard lock(mutex_);
  --count_;
  remove(client);
}

bool open_sockets::add(const std::string& client) {
  if (client.empty()) return true;
  const auto found = per_client_.try_emplace(client, 0).first;
  // The limit is at least 1, so a full entry cannot be one that try_emplace() has just made.
  if (found->second >= max_per_client_) return false;
  ++found->second;
  return true;
}

void open_sockets::remove(const std::string& client) {
  if (client.empty()) return;
  const auto found = per_client_.find(client);
  if (--found->second == 0) per_client_.erase(found);
}

} // namespace twill::net
