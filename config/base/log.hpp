// Logging facade: no logging library is visible here (spdlog stays in config/base/log.cpp).
//
// Any thread may call the functions; lines are written whole. Callers pass a finished string, so
// that no formatting library is needed in this header. Each line about a request has the request's
// id in its text. A caller waits until its line is written, unless write_from_thread() was called:
// then callers do not wait, and lines that standard error does not accept in time are dropped and
// counted.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace twill::log {

enum class level { trace, debug, info, warn, error, off };

/// The level with this name ("trace" to "off"); nullopt if there is none.
std::optional<level> level_named(std::string_view name);

/// Sets the least level that is written to standard error. Any thread may call this at any time.
void configure(level least);

enum class format {
  text, ///< time, level and message
  json, ///< one object a line
};
/// Sets the format of lines from now on. Call it before other threads begin.
void use_format(format wanted);

/// From now on a separate thread writes the lines. At the end of the process, and before a signal
/// such as SIGSEGV ends it, remaining lines have one second to be written. Call it once, before
/// threads that log begin.
void write_from_thread();

/// Waits until all lines are written or the time has passed; returns whether all were written. Must
/// be called before _exit().
bool flush(std::chrono::milliseconds longest = std::chrono::seconds(1));

/// Whether lines reach standard error.
struct delivery {
  std::uint64_t dropped_lines = 0; ///< since the start
  bool blocked = false;            ///< standard error accepts nothing, or lines are being dropped
};
delivery delivered();

/// True when a line of this level would be written. Callers ask before they build a costly message.
bool enabled(level l) noexcept;

void write(level l, std::string_view message);
/// `members` is JSON text such as `"a":1,"b":"x"`. Lines in the JSON format contain it beside the
/// message; lines in the text format do not.
void write(level l, std::string_view message, std::string_view members);

/// Writes a line as it is, without time and level, after the lines that came before it.
void write_plain(std::string_view line);

/// Appends the text as a JSON string. Bytes that are no UTF-8 count as Latin-1.
void append_json_string(std::string& out, std::string_view text);

/// Returns the text with control characters written as "\xHH"; every line is written so.
std::string escape_controls(std::string_view message);

inline void debug(std::string_view message) {
  write(level::debug, message);
}
inline void info(std::string_view message) {
  write(level::info, message);
}
inline void warn(std::string_view message) {
  write(level::warn, message);
}
inline void error(std::string_view message) {
  write(level::error, message);
}

} // namespace twill::log
