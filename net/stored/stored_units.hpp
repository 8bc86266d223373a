// Functions and constants that the parts of stored_service share: the bytes that a response counts
// for, the time, and the delay before a retry. The functions are pure, except that unix_ms() reads
// the clock.
#pragma once

#include <chrono>
#include <cstdint>

#include "net/stored/stored_bytes.hpp"

namespace twill::net {

/// How many bytes one response counts for besides its content, because of overhead in memory or in
/// the last disk block of its file.
inline constexpr std::int64_t room_beside = 1024;
/// How long to wait before an operation that the disk or the engine has refused is tried again.
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
