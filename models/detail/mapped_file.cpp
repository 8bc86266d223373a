#include "models/detail/mapped_file.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace twill::models {
namespace {

struct descriptor {
  int fd;
  ~descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

failure unreadable(const std::string& path, const std::string& why) {
  return {errc::file_unreadable, path + ": " + why};
}

} // namespace

result<std::shared_ptr<const mapped_file>> mapped_file::open(const std::string& path) {
  // O_NONBLOCK: a FIFO or device must be refused below, not waited for.
  const descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return unreadable(path, std::strerror(errno));
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) return unreadable(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return unreadable(path, "not a regular file");
  if (status.st_size == 0) return unreadable(path, "the file is empty");

  const auto size = static_cast<std::size_t>(status.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) return unreadable(path, std::strerror(errno));
  ::madvise(data, size, MADV_WILLNEED);

  std::shared_ptr<mapped_file> mapped(new mapped_file);
  mapped->path_ = path;
  mapped->data_ = static_cast<const std::byte*>(data);
  mapped->size_ = size;
  return std::shared_ptr<const mapped_file>(std::move(mapped));
}

mapped_file::~mapped_file() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

} // namespace twill::models
