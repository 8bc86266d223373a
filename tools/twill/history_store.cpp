#include "tools/twill/history_store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

namespace twill::tools {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class history_descriptor {
public:
  explicit history_descriptor(int fd) : fd_(fd) {}
  ~history_descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  history_descriptor(const history_descriptor&) = delete;
  history_descriptor& operator=(const history_descriptor&) = delete;
  int get() const { return fd_; }

private:
  int fd_;
};

/// Locks the folder against other processes and waits for them at most a second. Returns true at
/// once on file systems without locks.
bool lock(int folder) {
  for (int tries = 0; tries < 50; ++tries) {
    if (::flock(folder, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return true;
    std::this_thread::sleep_for(20ms);
  }
  return false;
}

bool fill(const fs::path& file, const std::function<bool(std::FILE*)>& write) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  ::fchmod(fd, 0600); // a file left by a killed program may have another mode
  std::FILE* const to = ::fdopen(fd, "w");
  if (to == nullptr) {
    ::close(fd);
    return false;
  }
  const bool written = write(to) && std::ferror(to) == 0 && std::fflush(to) == 0;
  return std::fclose(to) == 0 && written;
}

} // namespace

bool replace_file(const fs::path& file, const std::function<bool(std::FILE*)>& write) {
  std::error_code ignored;
  const fs::path folder = file.parent_path();
  fs::create_directories(folder, ignored);
  const history_descriptor held(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (held.get() < 0 || !lock(held.get())) return false;
  // When `file` is a symbolic link, its target is replaced and the link is kept.
  const fs::path real = fs::is_symlink(file, ignored) ? fs::canonical(file, ignored) : file;
  if (real.empty()) return false;
  fs::path beside = real;
  beside += ".new";
  if (fill(beside, write) && ::rename(beside.c_str(), real.c_str()) == 0) return true;
  ::unlink(beside.c_str());
  return false;
}

} // namespace twill::tools
