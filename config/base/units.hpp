// Byte counts and times as users write them: "512 MiB", "1.5 GB", "4096"; "30s", "500ms", "5m".
//
// Binary units are powers of 1024, decimal units powers of 1000. The functions are pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace twill {

inline constexpr std::int64_t kib = 1024;
inline constexpr std::int64_t mib = 1024 * kib;
inline constexpr std::int64_t gib = 1024 * mib;

/// Parses a byte count; nothing when the text is no such count or does not fit 63 bits.
std::optional<std::int64_t> parse_bytes(std::string_view text);

/// Parses a time with its unit (ms, s, m or min, h), rounded down to whole milliseconds; nothing
/// when the text is no such time or is longer than a hundred years.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// "1.50 GiB": three significant places, binary units.
std::string format_bytes(std::int64_t bytes);

} // namespace twill
