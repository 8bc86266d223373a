#include "tools/twilld/notify.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "config/base/log.hpp"
#include "config/base/units.hpp"
#include "tools/twilld/environment.hpp"

namespace twill::tools {
namespace {

using namespace std::chrono_literals;
using actors::engine_state;

/// The start-up timeout is extended by this time whenever more of the model has been loaded.
constexpr std::chrono::microseconds load_patience = 5min;
/// The stop timeout is the drain time plus this time, in which the engine ends.
constexpr std::chrono::microseconds stop_patience = 15s;

std::int64_t number(const std::string& text) {
  std::int64_t value = 0;
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc{} && stop == text.data() + text.size() ? value : 0;
}

/// The address of a socket named by a path, or by an abstract name that begins with '@'. Empty when
/// `name` is neither.
std::vector<char> socket_address(const std::string& name) {
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  if (name.size() < 2 || name.size() >= sizeof where.sun_path) return {};
  if (name.front() != '/' && name.front() != '@') return {};
  std::memcpy(where.sun_path, name.data(), name.size());
  if (name.front() == '@') where.sun_path[0] = '\0';
  const auto length = offsetof(sockaddr_un, sun_path) + name.size() + (name.front() == '/' ? 1 : 0);
  const auto* bytes = reinterpret_cast<const char*>(&where);
  return {bytes, bytes + length};
}

/// Replaces control characters by spaces, because the protocol has one assignment per line.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text;
}

std::string microseconds(std::chrono::microseconds time) {
  return std::to_string(time.count());
}

std::string monotonic_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::to_string(now.tv_sec * 1'000'000 + now.tv_nsec / 1000);
}

std::string requests(std::int64_t n) {
  return std::to_string(n) + (n == 1 ? " request" : " requests");
}

} // namespace

std::string serving_line(const actors::engine_stats& stats) {
  std::string line = requests(stats.requests_running) + " running, " +
                     std::to_string(stats.requests_waiting) + " waiting";
  if (stats.kv_blocks_total > 0)
    line += "; " + std::to_string(stats.kv_blocks_used * 100 / stats.kv_blocks_total) +
            " % of the KV cache in use";
  return line;
}

notifier::notifier() {
  const auto name = take_variable("NOTIFY_SOCKET");
  const auto limit_us = number(take_variable("WATCHDOG_USEC"));
  const auto pid = take_variable("WATCHDOG_PID");
  if (name.empty()) return;
  address_ = socket_address(name);
  if (address_.empty()) {
    log::warn("the service manager is told nothing: NOTIFY_SOCKET must be a path or @NAME, got " +
              one_line(name));
    return;
  }
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0) {
    log::warn(std::string("the service manager is told nothing: ") + std::strerror(errno));
    return;
  }
  const timeval patience{1, 0}; // a service manager that does not read must not block the daemon
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  watched_ = limit_us > 0 && (pid.empty() || number(pid) == ::getpid());
  if (watched_) period_ = std::clamp(std::chrono::milliseconds(limit_us / 3000), 1ms, period_);
}

notifier::~notifier() {
  if (socket_ >= 0) ::close(socket_);
}

void notifier::loading(std::int64_t done_bytes, std::int64_t total_bytes) {
  if (socket_ < 0) return;
  const std::lock_guard lock(mutex_);
  const auto now = clock::now();
  if (ready_ || stopping_ || (now - last_loading_ < 1s && done_bytes != total_bytes)) return;
  last_loading_ = now;
  const auto percent = total_bytes > 0 ? done_bytes * 100 / total_bytes : 0;
  send("STATUS=loading the model: " + std::to_string(percent) + " % of " +
       format_bytes(total_bytes) + "\nEXTEND_TIMEOUT_USEC=" + microseconds(load_patience));
}

void notifier::fetching() {
  if (socket_ < 0) return;
  const std::lock_guard lock(mutex_);
  const auto now = clock::now();
  if (ready_ || stopping_ || now - last_loading_ < 1s) return;
  last_loading_ = now;
  send("EXTEND_TIMEOUT_USEC=" + microseconds(load_patience));
}

void notifier::ready() {
  if (socket_ < 0) return;
  const std::lock_guard lock(mutex_);
  ready_ = true;
  if (!stopping_) send("READY=1");
}

void notifier::reloading() {
  if (socket_ < 0) return;
  const std::lock_guard lock(mutex_);
  if (ready_ && !stopping_) send("RELOADING=1\nMONOTONIC_USEC=" + monotonic_now());
}

void notifier::reloaded() {
  if (socket_ < 0) return;
  const std::lock_guard lock(mutex_);
  if (ready_ && !stopping_) send("READY=1");
}

void notifier::stopping(std::chrono::milliseconds drain_time) {
  if (socket_ < 0) return;
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  drain_end_ = clock::now() + drain_time;
  status_ = "draining";
  send("STOPPING=1\nSTATUS=" + status_ +
       "\nEXTEND_TIMEOUT_USEC=" + microseconds(drain_time + stop_patience));
}

std::string notifier::status_of(const actors::engine_port& port, engine_state state) const {
  if (stopping_) {
    const auto stats = port.stats();
    const auto left = std::chrono::ceil<std::chrono::seconds>(drain_end_ - clock::now());
    return "draining: " + requests(stats.requests_running + stats.requests_waiting) +
           " left, for " + std::to_string(std::max<std::int64_t>(left.count(), 0)) + " s at most";
  }
  return one_line(state == engine_state::ready ? serving_line(port.stats()) : port.state_detail());
}

void notifier::report(const actors::engine_port& port) {
  if (socket_ < 0) return;
  const auto state = port.state();
  const std::lock_guard lock(mutex_);
  std::string lines;
  if (watched_ && state != engine_state::stalled) lines = "WATCHDOG=1\n";
  if (auto status = status_of(port, state); status != status_) {
    lines += "STATUS=" + status + "\n";
    status_ = std::move(status);
  }
  if (!lines.empty()) send(lines);
}

void notifier::send(const std::string& lines) {
  const auto* to = reinterpret_cast<const sockaddr*>(address_.data());
  const auto sent = ::sendto(socket_, lines.data(), lines.size(), MSG_NOSIGNAL, to,
                             static_cast<socklen_t>(address_.size()));
  if (sent >= 0 || complained_) return;
  complained_ = true;
  log::warn(std::string("cannot tell the service manager: ") + std::strerror(errno));
}

} // namespace twill::tools
