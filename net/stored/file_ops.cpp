#include "net/stored/file_ops.hpp"

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <string_view>
#include <sys/file.h>
#include <unistd.h>

namespace twill::net {

int file_ops::make_folder(const char* path) {
  return ::mkdir(path, 0700);
}

int file_ops::open_folder(const char* path) {
  return ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int file_ops::open(int folder, const char* name, int flags) {
  return ::openat(folder, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
}

int file_ops::close(int file) {
  return ::close(file);
}

int file_ops::status(int file, struct stat& to) {
  return ::fstat(file, &to);
}

int file_ops::change_mode(int file, mode_t mode) {
  return ::fchmod(file, mode);
}

int file_ops::lock(int file) {
  return ::flock(file, LOCK_EX | LOCK_NB);
}

int file_ops::list(int folder, std::vector<std::string>& names) {
  // This listing needs its own descriptor, because the read position of `folder` may be that of an
  // earlier listing.
  const int own = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return -1;
  DIR* entries = ::fdopendir(own);
  if (entries == nullptr) {
    const int error = errno;
    ::close(own);
    errno = error;
    return -1;
  }
  errno = 0;
  while (const dirent* entry = ::readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  const int error = errno;
  ::closedir(entries);
  errno = error;
  return error == 0 ? 0 : -1;
}

ssize_t file_ops::read(int file, void* to, std::size_t n, off_t at) {
  return ::pread(file, to, n, at);
}

ssize_t file_ops::write(int file, const void* from, std::size_t n, off_t at) {
  return ::pwrite(file, from, n, at);
}

int file_ops::truncate(int file, off_t bytes) {
  return ::ftruncate(file, bytes);
}

int file_ops::sync(int file) {
  return ::fsync(file);
}

int file_ops::rename(int folder, const char* from, const char* to) {
  return ::renameat(folder, from, folder, to);
}

int file_ops::remove(int folder, const char* name) {
  return ::unlinkat(folder, name, 0);
}

file_ops& system_files() {
  static file_ops only;
  return only;
}

} // namespace twill::net
