#include "net/batch/private_file.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace twill::net {
namespace {

/// O_NONBLOCK is set so that open() does not block if the name belongs to a pipe.
descriptor open_regular(const std::filesystem::path& path, int flags) {
  descriptor file(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return descriptor();
  if (S_ISREG(status.st_mode)) return file;
  errno = EINVAL;
  return descriptor();
}

} // namespace

descriptor::~descriptor() {
  if (file_ >= 0) ::close(file_);
}

descriptor create_private(const std::filesystem::path& path) {
  return descriptor(::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
}

descriptor open_to_write(const std::filesystem::path& path) {
  return open_regular(path, O_WRONLY);
}

descriptor open_to_read(const std::filesystem::path& path) {
  return open_regular(path, O_RDONLY);
}

std::int64_t size_of(const descriptor& file) {
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 ? status.st_size : 0;
}

bool write_at(const descriptor& to, std::string_view bytes, std::int64_t offset) {
  while (!bytes.empty()) {
    const auto n = ::pwrite(to.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = ENOSPC;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
    offset += n;
  }
  return true;
}

bool write_whole(const descriptor& to, std::string_view bytes) {
  return write_at(to, bytes, 0) && ::ftruncate(to.get(), static_cast<off_t>(bytes.size())) == 0;
}

bool is_out_of_descriptors(int error) {
  return error == EMFILE || error == ENFILE;
}

api_error no_descriptor_left() {
  return {
      errc::busy,
      "the server has no file descriptor left for a file; retry later, or let it open more files "
      "(LimitNOFILE of its service, ulimit -n)",
      ""};
}

api_error describe_failure(int error) {
  if (is_out_of_descriptors(error)) return no_descriptor_left();
  return {errc::storage_full,
          std::string("the disk of `batches.folder` does not take the file: ") +
              std::strerror(error),
          ""};
}

} // namespace twill::net
