#include "models/checkpoint/mapped_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "models/checkpoint/lfs_pointer.hpp"

namespace twill::models {
namespace {

/// How many bytes after the requested part read_ahead() asks the kernel to read too. A request for
/// a whole file of many gigabytes would block until most of the file is read, and would evict the
/// pages that are needed first.
constexpr std::size_t ahead_bytes = std::size_t{128} << 20;

struct descriptor {
  int fd;
  ~descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

std::int64_t nanoseconds(const timespec& t) {
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

mapped_file::file_state state_of(const struct stat& found) {
  return {static_cast<std::uint64_t>(found.st_dev), static_cast<std::uint64_t>(found.st_ino),
          nanoseconds(found.st_mtim), nanoseconds(found.st_ctim)};
}

failure unreadable(const std::string& path, const std::string& why) {
  return {errc::file_unreadable, path + ": " + why};
}

} // namespace

result<std::shared_ptr<const mapped_file>> mapped_file::open(const std::string& path) {
  // With O_NONBLOCK, opening a FIFO or a device returns at once; the S_ISREG check refuses it.
  const descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return unreadable(path, std::strerror(errno));
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) return unreadable(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return unreadable(path, "not a regular file");
  if (status.st_size == 0) return unreadable(path, "the file is empty");

  const auto size = static_cast<std::size_t>(status.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) return unreadable(path, std::strerror(errno));
  std::shared_ptr<mapped_file> mapped(new mapped_file);
  mapped->path_ = path;
  mapped->data_ = static_cast<const std::byte*>(data);
  mapped->size_ = size;
  mapped->state_ = state_of(status);
  mapped->guard_ = std::make_unique<mapping_guard>(data, size);
  if (is_lfs_pointer({reinterpret_cast<const char*>(mapped->data_), size}))
    return failure{errc::file_unreadable, path + lfs_pointer_words};
  mapped->read_ahead(mapped->bytes().first(0));
  return std::shared_ptr<const mapped_file>(std::move(mapped));
}

mapped_file::~mapped_file() {
  guard_.reset();
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

bool mapped_file::written_since() const {
  struct stat found {};
  if (::stat(path_.c_str(), &found) != 0) return false;
  const file_state now = state_of(found);
  const bool is_same_file = now.device == state_.device && now.number == state_.number;
  return is_same_file && !(now == state_ && static_cast<std::size_t>(found.st_size) == size_);
}

void mapped_file::read_ahead(std::span<const std::byte> part) const {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = part.data() == nullptr ? 0 : static_cast<std::size_t>(part.data() - data_);
  const std::size_t from = begin / page * page;
  const std::size_t length = std::min(size_ - from, begin - from + part.size() + ahead_bytes);
  // The kernel takes this call as advice: if it fails, only speed is lost.
  ::madvise(const_cast<std::byte*>(data_) + from, length, MADV_WILLNEED);
}

void mapped_file::release(std::span<const std::byte> part) const {
  if (part.empty()) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = static_cast<std::size_t>(part.data() - data_);
  const std::size_t from = (begin + page - 1) / page * page;
  // The last page of a mapping may extend beyond the file's end, where it holds no data, so the
  // whole page may be released.
  const std::size_t end = begin + part.size();
  const std::size_t to = end == size_ ? end : end / page * page;
  if (from < to) ::madvise(const_cast<std::byte*>(data_) + from, to - from, MADV_DONTNEED);
}

} // namespace twill::models
