#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "config/base/units.hpp"
#include "models/offload/streams/disk_store.hpp"

namespace twill::models::offload {
namespace {

/// The pauses between retries of a failed read, which sum up to about a third of a second.
constexpr std::chrono::milliseconds first_pause{1}, longest_pause{256};

class file_store final : public disk_store {
public:
  /// `place` is for messages: the folder, or the path of a file with a name. Owns the descriptor.
  file_store(int fd, std::string place, bool direct, read_function read_at)
      : fd_(fd), place_(std::move(place)), direct_(direct && past_the_page_cache(fd)),
        read_at_(read_at) {}
  file_store(const file_store&) = delete;
  file_store& operator=(const file_store&) = delete;
  ~file_store() override { ::close(fd_); }

  /// If the file system cannot reserve space, later writes allocate it.
  result<nothing> reserve(std::int64_t bytes) override {
#ifdef __linux__
    int why = 0;
    do
      why = ::fallocate(fd_, 0, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
    while (why == EINTR);
    if (why != 0 && why != EOPNOTSUPP && why != ENOSYS)
      return failure{errc::file_unwritable,
                     where("reserving", 0, bytes) + ": " + std::strerror(why)};
#else
    static_cast<void>(bytes);
#endif
    return nothing{};
  }

  result<nothing> write(std::int64_t offset, const void* from, std::int64_t bytes) override {
    const auto* at = static_cast<const char*>(from);
    std::int64_t done = 0;
    while (done < bytes) {
      const auto n = ::pwrite(fd_, at + done, static_cast<std::size_t>(bytes - done),
                              static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        const int why = n == 0 ? ENOSPC : errno;
        return failure{errc::file_unwritable,
                       where("writing", offset + done, bytes - done) + ": " + std::strerror(why)};
      }
      done += n;
    }
    return nothing{};
  }

  result<nothing> read(std::int64_t offset, void* to, std::int64_t bytes) override {
    auto* at = static_cast<char*>(to);
    std::int64_t done = 0;
    auto pause = first_pause;
    while (done < bytes) {
      const auto n = read_at_(fd_, at + done, static_cast<std::size_t>(bytes - done),
                              static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EIO || errno == EAGAIN) && pause <= longest_pause) {
        std::this_thread::sleep_for(pause);
        pause *= 4;
        continue;
      }
      if (n <= 0)
        return failure{errc::file_unreadable,
                       where("reading", offset + done, bytes - done) + ": " +
                           (n == 0 ? "the file ends before that" : std::strerror(errno))};
      done += n;
    }
    return nothing{};
  }

  void prefetch(std::int64_t offset, std::int64_t bytes) override {
    if (!direct_)
      posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                    POSIX_FADV_WILLNEED);
  }

  std::string describe() const override {
    return place_ + (direct_ ? ", direct reads" : ", reads through the page cache");
  }

private:
  std::string where(const char* doing, std::int64_t offset, std::int64_t bytes) const {
    return "offload file (" + place_ + "): " + doing + " " + format_bytes(bytes) + " at " +
           format_bytes(offset);
  }

  /// Tmpfs of older kernels refuses direct reads.
  static bool past_the_page_cache(int fd) {
#ifdef O_DIRECT
    const int flags = ::fcntl(fd, F_GETFL);
    return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_DIRECT) == 0;
#else
    static_cast<void>(fd);
    return false;
#endif
  }

  int fd_;
  std::string place_;
  bool direct_;
  read_function read_at_;
};

} // namespace

result<std::unique_ptr<disk_store>> open_file_store(const std::string& dir, bool direct,
                                                    read_function read_at) {
  std::error_code failed;
  const std::filesystem::path where =
      dir.empty() ? std::filesystem::temp_directory_path(failed) : std::filesystem::path(dir);
  std::string name = (where / "twill-offload-XXXXXX").string();
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0)
    return failure{errc::file_unwritable,
                   "`offload.dir` must be a folder that can be written, got " + where.string() +
                       ": " + std::strerror(errno)};
  ::unlink(name.c_str());
  return result<std::unique_ptr<disk_store>>(
      std::make_unique<file_store>(fd, where.string(), direct, read_at));
}

result<kept_store> open_kept_store(const std::string& path, std::int64_t most_bytes) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0)
    return failure{errc::file_unwritable, "opening " + path + ": " + std::strerror(errno)};
  kept_store kept;
  kept.store = std::make_unique<file_store>(fd, path, false, ::pread);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0)
    return failure{errc::file_unwritable, path + " is in use by another process"};
  struct stat found = {};
  if (::fstat(fd, &found) != 0 || ::fchmod(fd, 0600) != 0)
    return failure{errc::file_unwritable, "opening " + path + ": " + std::strerror(errno)};
  if (!S_ISREG(found.st_mode)) return failure{errc::file_unwritable, path + " is not a file"};
  kept.bytes = std::min<std::int64_t>(found.st_size, most_bytes);
  if (kept.bytes < found.st_size && ::ftruncate(fd, static_cast<off_t>(kept.bytes)) != 0)
    return failure{errc::file_unwritable, "shortening " + path + ": " + std::strerror(errno)};
  return kept;
}

result<std::unique_ptr<disk_store>> open_stored_file(const std::string& path, bool direct) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return failure{errc::file_unreadable, "opening " + path + ": " + std::strerror(errno)};
  return result<std::unique_ptr<disk_store>>(
      std::make_unique<file_store>(fd, path, direct, ::pread));
}

} // namespace twill::models::offload
