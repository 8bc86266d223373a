#include "config/base/log.hpp"

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

void write(level l, std::string_view message) {
  logger().log(native(l), spdlog::string_view_t(message.data(), message.size()));
}

} // namespace twill::log
