#include "config/base/log.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace twill::log {
namespace {

spdlog::level::level_enum native(level l) {
  switch (l) {
  case level::trace:
    return spdlog::level::trace;
  case level::debug:
    return spdlog::level::debug;
  case level::info:
    return spdlog::level::info;
  case level::warn:
    return spdlog::level::warn;
  case level::error:
    return spdlog::level::err;
  case level::off:
    break;
  }
  return spdlog::level::off;
}

spdlog::logger& logger() {
  static auto instance = [] {
    auto made = spdlog::stderr_color_mt("twill");
    made->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
    return made;
  }();
  return *instance;
}

/// C0 controls and DEL: a client could forge lines or drive a terminal with them.
bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

constexpr std::array<std::string_view, 6> names{"trace", "debug", "info", "warn", "error", "off"};

} // namespace

std::optional<level> level_named(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<level>(i);
  return std::nullopt;
}

void configure(level least) {
  logger().set_level(native(least));
}

bool enabled(level l) noexcept {
  return logger().should_log(native(l));
}

std::string escape_controls(std::string_view message) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_control(c)) {
      out += "\\x";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    } else {
      out += c;
    }
  }
  return out;
}

void write(level l, std::string_view message) {
  if (!enabled(l)) return;
  std::string escaped;
  if (std::any_of(message.begin(), message.end(), is_control)) {
    escaped = escape_controls(message);
    message = escaped;
  }
  logger().log(native(l), spdlog::string_view_t(message.data(), message.size()));
}

} // namespace twill::log
