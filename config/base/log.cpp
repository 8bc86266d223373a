#include "config/base/log.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <unistd.h>

#include <spdlog/details/os.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include "config/base/fault_log.hpp"
#include "config/base/log_writer.hpp"

namespace twill::log {
namespace {

constexpr const char* text_pattern = "%Y-%m-%d %H:%M:%S.%e %^%l%$ %v";
constexpr const char* json_pattern = "{\"time\":\"%Y-%m-%dT%H:%M:%S.%e%z\",%v}";

/// The most bytes of lines that wait while standard error accepts nothing.
constexpr std::size_t most_waiting_bytes = std::size_t{4} << 20;

bool writes_json = false;
log_writer* from_thread = nullptr; ///< outlives threads that log at the end

void put(std::string_view line) {
  if (from_thread != nullptr)
    from_thread->put(line);
  else
    write_whole(STDERR_FILENO, line);
}

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

/// Formats lines, with colours for a terminal that shows them.
class line_sink final : public spdlog::sinks::base_sink<std::mutex> {
public:
  std::string format(const spdlog::details::log_msg& message) {
    const std::lock_guard lock(mutex_);
    return formatted(message);
  }

protected:
  void sink_it_(const spdlog::details::log_msg& message) override { put(formatted(message)); }
  void flush_() override {}

private:
  static std::string_view colour_of(spdlog::level::level_enum level) {
    switch (level) {
    case spdlog::level::trace:
      return "\033[37m";
    case spdlog::level::debug:
      return "\033[36m";
    case spdlog::level::info:
      return "\033[32m";
    case spdlog::level::warn:
      return "\033[33m\033[1m";
    default:
      return "\033[31m\033[1m";
    }
  }

  std::string formatted(const spdlog::details::log_msg& message) {
    message.color_range_start = message.color_range_end = 0;
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    std::string line(text.data(), text.size());
    if (colours_ && message.color_range_end > message.color_range_start) {
      line.insert(message.color_range_end, "\033[m");
      line.insert(message.color_range_start, colour_of(message.level));
    }
    return line;
  }

  const bool colours_ =
      spdlog::details::os::in_terminal(stderr) && spdlog::details::os::is_color_terminal();
};

struct stderr_logger {
  stderr_logger() {
    logger.set_pattern(text_pattern);
    // the default handler would wait for standard error
    logger.set_error_handler([](const std::string&) {});
  }
  std::shared_ptr<line_sink> sink = std::make_shared<line_sink>();
  spdlog::logger logger{"twill", sink};
};

stderr_logger& ours() {
  static auto& kept = *new stderr_logger; // outlives threads that log at the end
  return kept;
}

spdlog::logger& logger() {
  return ours().logger;
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
  const bool no_code_point = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return overlong || no_code_point ? 0 : n;
}

std::int64_t now_unix_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

constexpr std::array<std::string_view, 6> names{"trace", "debug", "info", "warn", "error", "off"};

/// The members of a line in JSON, without the time.
std::string json_members(level l, std::string_view message, std::string_view members) {
  std::string out =
      "\"level\":\"" + std::string(names[static_cast<std::size_t>(l)]) + "\",\"message\":";
  append_json_string(out, message);
  if (!members.empty()) (out += ',') += members;
  return out;
}

std::string notice_of(std::uint64_t lost) {
  auto text = std::to_string(lost) + (lost == 1 ? " line was" : " lines were") +
              " dropped here: standard error did not take the log";
  faults().add(false, text, now_unix_ms());
  if (writes_json) text = json_members(level::warn, text, {});
  return ours().sink->format({"twill", spdlog::level::warn, text});
}

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

void write_from_thread() {
  from_thread = new log_writer(STDERR_FILENO, most_waiting_bytes, notice_of);
  write_before_crashes(*from_thread);
  std::atexit([] { flush(); });
}

bool flush(std::chrono::milliseconds longest) {
  return from_thread == nullptr || from_thread->flush(longest);
}

delivery delivered() {
  if (from_thread == nullptr) return {};
  return {from_thread->dropped(), from_thread->is_blocked()};
}

void write_plain(std::string_view line) {
  put(std::string(line) + '\n');
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
    escaped = json_members(l, message, members);
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
