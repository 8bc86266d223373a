#include "actors/trace/trace_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>

#include "config/base/log.hpp"

namespace twill::actors {

namespace {

failure<errc> no_trace(const std::string& path, const std::string& why) {
  return {errc::invalid_argument,
          "`scheduler.trace` must be a file that twilld can write, got " + path + ": " + why};
}

constexpr std::size_t many_bytes = std::size_t{64} << 10;

} // namespace

result<std::shared_ptr<trace_file>> trace_file::open(const std::string& path,
                                                     std::int64_t max_bytes) {
  struct stat found = {};
  if (::lstat(path.c_str(), &found) == 0) {
    if (!S_ISREG(found.st_mode)) return no_trace(path, "it is no regular file");
    if (::rename(path.c_str(), (path + ".1").c_str()) != 0)
      return no_trace(path, std::string("keeping the older one: ") + std::strerror(errno));
  }
  const int fd =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_APPEND, 0600);
  if (fd < 0) return no_trace(path, std::strerror(errno));
  return std::shared_ptr<trace_file>(new trace_file(fd, path, max_bytes));
}

result<std::shared_ptr<trace_file>> trace_file::of_process(const std::string& path,
                                                           std::int64_t max_bytes) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<trace_file>> opened;
  const std::lock_guard lock(mutex);
  if (const auto known = opened.find(path); known != opened.end()) return known->second;
  auto fresh = open(path, max_bytes);
  if (fresh.ok()) opened.emplace(path, fresh.value());
  return fresh;
}

trace_file::~trace_file() {
  ::close(fd_);
}

std::uint64_t trace_file::add_stream() {
  const std::lock_guard lock(mutex_);
  return ++streams_;
}

void trace_file::stop(const std::string& why) {
  stopped_ = true;
  log::warn("`scheduler.trace` " + path_ + " ends here: " + why);
}

void trace_file::append(std::string_view lines) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  if (bytes_ + static_cast<std::int64_t>(lines.size()) > max_bytes_)
    return stop("it has " + std::to_string(bytes_) +
                " bytes, and more would not fit `scheduler.trace_size`");
  while (!lines.empty()) {
    const auto n = ::write(fd_, lines.data(), lines.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return stop(std::string("writing failed: ") + std::strerror(errno));
    bytes_ += n;
    lines.remove_prefix(static_cast<std::size_t>(n));
  }
}

void trace_stream::add(std::chrono::nanoseconds at, std::string_view body) {
  char head[64];
  const int n =
      std::snprintf(head, sizeof head, R"({"s":%llu,"t":%lld,)",
                    static_cast<unsigned long long>(number_), static_cast<long long>(at.count()));
  lines_.append(head, static_cast<std::size_t>(n)).append(body).append("}\n");
  if (lines_.size() >= many_bytes) rested();
}

void trace_stream::rested() {
  if (lines_.empty()) return;
  file_->append(lines_);
  lines_.clear();
}

} // namespace twill::actors
