#include "net/batch/private_file.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace twill::net {

descriptor::~descriptor() {
  if (file_ >= 0) ::close(file_);
}

descriptor create_private(const std::filesystem::path& path) {
  return descriptor(::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
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
