// Formats and parses times as Ollama's API does. All functions but moment_now() are pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace twill::net {

/// One moment on two clocks: the system clock for dates, the steady clock for durations.
struct reply_moment {
  std::chrono::system_clock::time_point wall;
  std::chrono::steady_clock::time_point steady;
};
reply_moment moment_now();

/// Formats a time as "2026-11-28T14:47:07.123456789Z" (RFC 3339).
std::string rfc3339(std::chrono::system_clock::time_point when);

/// Parses a duration in Go's format ("5m", "1h30m", "-1s", "300ms", "0") to seconds. Returns
/// nullopt if the text is not a duration.
std::optional<double> go_seconds(std::string_view text);

} // namespace twill::net
