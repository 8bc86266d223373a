#include "config/base/log.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "config/base/fault_log.hpp"

namespace twill::log {
namespace {

constexpr const char* text_pattern = "%Y-%m-%d %H:%M:%S.%e %^%l%$ %v";
constexpr const char* json_pattern = "{\"time\":\"%Y-%m-%dT%H:%M:%S.%e%z\",%v}";

bool writes_json = false;

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
    made->set_pattern(text_pattern);
    return made;
  }();
  return *instance;
}

/// C0 controls and DEL: a client could forge lines or drive a terminal with them.
bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

/// How many bytes a UTF-8 character takes that begins with `text`; 0: none begins there.
std::size_t character_bytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return 1;
  const std::size_t n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool beyond = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return overlong || beyond ? 0 : n;
}

std::int64_t now_unix_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
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

void use_format(format wanted) {
  writes_json = wanted == format::json;
  logger().set_pattern(writes_json ? json_pattern : text_pattern);
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

void append_json_string(std::string& out, std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const char c = text.front();
    const auto byte = static_cast<unsigned char>(c);
    const auto n = character_bytes(text);
    if (n == 0 || is_control(c)) {
      out += "\\u00";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += text.substr(0, n);
    }
    text.remove_prefix(std::max<std::size_t>(n, 1));
  }
  out += '"';
}

void write(level l, std::string_view message) {
  write(l, message, {});
}

void write(level l, std::string_view message, std::string_view members) {
  if (l == level::warn || l == level::error)
    faults().add(l == level::error, message, now_unix_ms());
  if (!enabled(l)) return;
  std::string escaped;
  if (writes_json) {
    escaped = "\"level\":\"" + std::string(names[static_cast<std::size_t>(l)]) + "\",\"message\":";
    append_json_string(escaped, message);
    if (!members.empty()) (escaped += ',') += members;
    logger().log(native(l), spdlog::string_view_t(escaped.data(), escaped.size()));
    return;
  }
  if (std::any_of(message.begin(), message.end(), is_control)) {
    escaped = escape_controls(message);
    message = escaped;
  }
  logger().log(native(l), spdlog::string_view_t(message.data(), message.size()));
}

} // namespace twill::log
