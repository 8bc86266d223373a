#include "tools/common/scratch_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <system_error>
#include <vector>

namespace twill::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* prefix = ".fetch-";

/// Locks the folder and returns the file descriptor that holds the lock. Returns -1 when the folder
/// cannot be opened or another process holds the lock.
int lock(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0 && ::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

void remove_abandoned(const fs::path& parent) {
  std::error_code error;
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(parent, error))
    if (entry.path().filename().string().starts_with(prefix)) left.push_back(entry.path());
  for (const auto& folder : left) {
    // A process locks its folder shortly after making it, so a new folder may be unlocked but in
    // use.
    const auto age = fs::file_time_type::clock::now() - fs::last_write_time(folder, error);
    if (error || age < std::chrono::minutes(1)) continue;
    const int fd = lock(folder);
    if (fd < 0) continue;
    fs::remove_all(folder, error);
    ::close(fd);
  }
}

} // namespace

scratch_folder::scratch_folder(const fs::path& parent) {
  remove_abandoned(parent);
  std::string pattern = (parent / (std::string(prefix) + "XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr) return;
  path_ = pattern;
  lock_ = lock(path_);
}

scratch_folder::~scratch_folder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

} // namespace twill::tools
