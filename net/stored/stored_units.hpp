// What the parts of stored_service share: how much room a response takes, the time, and how soon
// something is tried again. Pure but for the clock.
#pragma once

#include <chrono>
#include <cstdint>

#include "net/stored/stored_bytes.hpp"

namespace twill::net {

/// What one response takes beside its bytes, in memory or in its file's last block.
inline constexpr std::int64_t room_beside = 1024;
/// What the disk or the engine did not take is tried again after so long.
inline constexpr std::chrono::seconds stored_retry_after{1};

inline std::int64_t room_of(const stored_bytes& bytes) {
  auto room = room_beside + static_cast<std::int64_t>(bytes.head.size());
  for (const auto& record : bytes.records)
    room += static_cast<std::int64_t>(sizeof record + record.size());
  return room;
}

inline std::int64_t unix_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

} // namespace twill::net
