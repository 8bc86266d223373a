#include "actors/offloader/kept_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <filesystem>
#include <thread>
#include <vector>

#include "actors/kv/cache_scope.hpp"
#include "config/base/cache_folder.hpp"
#include "config/base/log.hpp"
#include "config/base/units.hpp"
#include "models/offload/streams/checksum.hpp"

namespace twill::actors {

namespace {

namespace fs = std::filesystem;

constexpr const char* key_file = "key";
constexpr const char* blocks_suffix = ".blocks";
constexpr std::chrono::seconds longest_purge{5};

struct closing_fd {
  explicit closing_fd(int opened) : fd(opened) {}
  closing_fd(const closing_fd&) = delete;
  closing_fd& operator=(const closing_fd&) = delete;
  ~closing_fd() {
    if (fd >= 0) ::close(fd);
  }
  int fd;
};

models::failure system_failure(const std::string& what) {
  return {models::errc::file_unwritable, what + ": " + std::strerror(errno)};
}

/// The two words of the key, then their checksum.
using key_record = std::array<std::uint64_t, 3>;

std::uint64_t sum_of(const key_record& record) {
  return models::offload::checksum(record.data(), 2 * sizeof(std::uint64_t));
}

std::string hex(std::uint64_t value) {
  std::string text(16, '0');
  for (std::size_t i = 16; i-- > 0; value >>= 4)
    text[i] = "0123456789abcdef"[value & 15];
  return text;
}

std::string hash_text(const std::string& text) {
  return hex(models::offload::checksum(text.data(), static_cast<std::int64_t>(text.size())));
}

/// Waits at most `patience` for the lock.
models::result<kept_folder_lock> lock_folder(const std::string& folder, int kind,
                                             std::chrono::milliseconds patience) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return models::failure{models::errc::file_unreadable,
                           "the folder of kept KV must be readable, got " + folder + ": " +
                               std::strerror(errno)};
  kept_folder_lock lock(fd);
  constexpr std::chrono::milliseconds pause{50};
  while (::flock(fd, kind | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return system_failure("locking " + folder);
    if (patience.count() <= 0)
      return models::failure{
          models::errc::file_unwritable,
          kind == LOCK_EX ? folder + " is in use by a running daemon (`kv.keep`); stop the daemon, "
                                     "or give it another `kv.disk_dir`, before you purge"
                          : folder + " is being purged by another process; start again after that"};
    std::this_thread::sleep_for(pause);
    patience -= pause;
  }
  return lock;
}

} // namespace

kept_folder_lock::~kept_folder_lock() {
  if (fd_ >= 0) ::close(fd_);
}

models::result<std::string> kept_folder_path(const std::string& disk_dir) {
  if (!disk_dir.empty()) {
    // A slash at the end is removed. With that slash, make_kept_folder() would take the folder
    // itself for a parent folder, and it creates parent folders with permissions for other users.
    const auto end = disk_dir.find_last_not_of('/');
    return end == std::string::npos ? disk_dir : disk_dir.substr(0, end + 1);
  }
  if (const auto cache = cache_folder()) return (*cache / "kv").string();
  return models::failure{models::errc::bad_option,
                         "`kv.disk_dir` must be given where neither XDG_CACHE_HOME nor "
                         "HOME is set"};
}

models::result<nothing> make_kept_folder(const std::string& folder) {
  std::error_code failed;
  fs::create_directories(fs::path(folder).parent_path(), failed);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return system_failure("making the folder " + folder + " (`kv.disk_dir`)");
  struct stat found = {};
  if (::lstat(folder.c_str(), &found) != 0)
    return system_failure("looking at " + folder + " (`kv.disk_dir`)");
  if (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid() || (found.st_mode & 077) != 0)
    return models::failure{
        models::errc::file_unwritable,
        "`kv.disk_dir` must be a folder of this user that nobody else may enter (mode "
        "0700), since it tells of prompts, or one that does not exist yet; got " +
            folder};
  return nothing{};
}

models::result<hash_key> kept_key(const std::string& folder) {
  const std::string path = folder + "/" + key_file;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return system_failure("opening " + path);
  const closing_fd closes(fd);
  ::flock(fd, LOCK_EX);
  key_record record{};
  if (::pread(fd, record.data(), sizeof record, 0) == static_cast<ssize_t>(sizeof record) &&
      record[2] == sum_of(record))
    return hash_key{record[0], record[1]};
  const hash_key fresh = draw_hash_key();
  record = {fresh.first, fresh.second, 0};
  record[2] = sum_of(record);
  if (::fchmod(fd, 0600) != 0 ||
      ::pwrite(fd, record.data(), sizeof record, 0) != static_cast<ssize_t>(sizeof record) ||
      ::fsync(fd) != 0)
    return system_failure("writing " + path);
  return fresh;
}

models::result<kept_folder_lock> keep_scope_key(const std::string& disk_dir) {
  auto folder = kept_folder_path(disk_dir);
  if (!folder.ok()) return folder.error();
  if (auto made = make_kept_folder(folder.value()); !made.ok()) return made.error();
  auto lock = lock_folder(folder.value(), LOCK_SH, longest_purge);
  if (!lock.ok()) return lock.error();
  auto key = kept_key(folder.value());
  if (!key.ok()) return key.error();
  use_scope_key(key.value());
  return lock;
}

std::string kept_file(const std::string& folder, const std::string& model_path,
                      const std::string& fingerprint) {
  return folder + "/" + hash_text(model_path) + "-" + hash_text(fingerprint) + blocks_suffix;
}

void remove_old_files(const std::string& folder, const std::string& model_path,
                      const std::string& fingerprint) {
  const fs::path own = kept_file(folder, model_path, fingerprint);
  std::error_code failed;
  std::vector<fs::path> found;
  for (const auto& file : fs::directory_iterator(folder, failed))
    if (file.path().filename().string().starts_with(hash_text(model_path) + "-") &&
        file.path().extension() == blocks_suffix && file.path() != own)
      found.push_back(file.path());
  for (const fs::path& path : found) {
    const closing_fd file(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
    if (file.fd < 0 || ::flock(file.fd, LOCK_EX | LOCK_NB) != 0) continue;
    const auto size = fs::file_size(path, failed);
    if (::unlink(path.c_str()) == 0 && !failed)
      log::info("removed " + format_bytes(static_cast<std::int64_t>(size)) +
                " of KV that was kept for an earlier state of the model");
  }
}

models::result<std::int64_t> purge_kept_folder(const std::string& folder) {
  auto lock = lock_folder(folder, LOCK_EX, {});
  if (!lock.ok()) return lock.error();
  std::error_code failed;
  std::int64_t bytes = 0;
  std::vector<fs::path> found;
  const fs::directory_iterator files(folder, failed);
  if (failed)
    return models::failure{models::errc::file_unreadable,
                           "the folder of kept KV must be readable, got " + folder + ": " +
                               failed.message()};
  for (const auto& file : files)
    if (file.is_regular_file(failed) && !file.is_symlink(failed) &&
        (file.path().extension() == blocks_suffix || file.path().filename() == key_file))
      found.push_back(file.path());
  // held until the files are removed, so that no process opens them meanwhile
  std::deque<closing_fd> locked;
  for (const fs::path& path : found) {
    locked.emplace_back(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
    if (locked.back().fd < 0) return system_failure("opening " + path.string());
    if (::flock(locked.back().fd, LOCK_EX | LOCK_NB) != 0)
      return models::failure{models::errc::file_unwritable,
                             path.string() +
                                 " is in use; stop the daemon that serves with it first"};
  }
  for (const fs::path& path : found) {
    const auto size = fs::file_size(path, failed);
    if (!failed) bytes += static_cast<std::int64_t>(size);
    if (::unlink(path.c_str()) != 0) return system_failure("removing " + path.string());
  }
  return bytes;
}

} // namespace twill::actors
