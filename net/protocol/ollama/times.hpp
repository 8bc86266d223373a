// Times as Ollama's API writes them. Pure, except for moment_now().
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace twill::net {

/// One moment on both clocks: what the time is, and what durations are measured by.
struct reply_moment {
  std::chrono::system_clock::time_point wall;
  std::chrono::steady_clock::time_point steady;
};
reply_moment moment_now();

/// "2026-11-28T14:47:07.123456789Z" (RFC 3339).
std::string rfc3339(std::chrono::system_clock::time_point when);

/// The seconds of a duration as Go writes it: "5m", "1h30m", "-1s", "300ms", "0". Nothing where the
/// text is none.
std::optional<double> go_seconds(std::string_view text);

} // namespace twill::net
