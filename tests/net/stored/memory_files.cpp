#include "tests/net/stored/memory_files.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace twill::testing {
namespace {

int failed(int error) {
  errno = error;
  return -1;
}

std::string after_failure(const std::string& bytes, const std::string& durable,
                          unsynced_bytes left) {
  if (left == unsynced_bytes::none) return durable;
  if (left == unsynced_bytes::all) return bytes;
  const auto most = std::min(bytes.size(), durable.size());
  std::size_t same = 0;
  while (same < most && bytes[same] == durable[same])
    ++same;
  if (left == unsynced_bytes::half) return bytes.substr(0, same + (bytes.size() - same) / 2);
  return bytes.substr(0, same) + std::string(bytes.size() - same, '\0');
}

} // namespace

memory_files::memory_files() : owner(::geteuid()) {}

memory_files memory_files::disk_copy() const {
  memory_files copy;
  copy.exists_ = exists_;
  std::map<const inode*, std::shared_ptr<inode>> copies; // a file may be in several maps
  const auto copied = [&](const name_map& from) {
    name_map to;
    for (const auto& [name, file] : from) {
      auto& made = copies[file.get()];
      if (made == nullptr) {
        made = std::make_shared<inode>(*file);
        made->locked = false;
      }
      to[name] = made;
    }
    return to;
  };
  copy.names_ = copied(names_);
  copy.durable_names_ = copied(durable_names_);
  for (const auto& names : unsynced_names_)
    copy.unsynced_names_.push_back(copied(names));
  return copy;
}

memory_files memory_files::after_power_failure(unsynced_bytes bytes, std::size_t n_names) const {
  auto disk = disk_copy();
  disk.names_ = n_names == 0 ? disk.durable_names_ : disk.unsynced_names_[n_names - 1];
  disk.durable_names_ = disk.names_;
  disk.unsynced_names_.clear();
  for (const auto& [name, file] : disk.names_)
    file->bytes = file->durable = after_failure(file->bytes, file->durable, bytes);
  return disk;
}

/// Whether this call shall fail, with errno. Throws where the process ends before it.
bool memory_files::fails(bool changes) {
  ends_now_ = false;
  if (ended_) {
    errno = EIO;
    return true;
  }
  if (changes && end_at_ >= 0 && end_at_-- == 0) {
    ended_ = true;
    if (!end_in_middle_) throw process_ended();
    ends_now_ = true;
  }
  if (n_fails_ <= 0 || fail_at_-- > 0) return false;
  --n_fails_;
  has_failed_ = true;
  errno = error_;
  return true;
}

/// Returns the result of a call, or throws if the process ends in this call.
int memory_files::done(int result, int error) {
  if (ends_now_) throw process_ended();
  if (result < 0) errno = error;
  return result;
}

memory_files::inode* memory_files::file_of(int file) {
  const auto found = open_.find(file);
  return found == open_.end() ? nullptr : found->second.get();
}

int memory_files::make_folder(const char*) {
  if (fails(true)) return -1;
  if (exists_) return done(-1, EEXIST);
  exists_ = true;
  return done(0);
}

int memory_files::open_folder(const char*) {
  if (fails(false)) return -1;
  if (!exists_) return failed(ENOENT);
  open_[next_file_] = nullptr;
  return next_file_++;
}

int memory_files::open(int, const char* name, int flags) {
  const bool makes = (flags & O_CREAT) != 0;
  if (fails(makes)) return -1;
  auto found = names_.find(name);
  if (found == names_.end() && !makes) return failed(ENOENT);
  if (found == names_.end()) {
    found = names_.emplace(name, std::make_shared<inode>()).first;
    unsynced_names_.push_back(names_);
  } else if ((flags & O_TRUNC) != 0) {
    found->second->bytes.clear();
  }
  const int file = done(next_file_++);
  open_[file] = found->second;
  return file;
}

int memory_files::close(int file) {
  const auto found = open_.find(file);
  if (found == open_.end()) return failed(EBADF);
  if (found->second != nullptr) found->second->locked = false;
  open_.erase(found);
  return 0;
}

int memory_files::status(int file, struct stat& to) {
  if (fails(false)) return -1;
  to = {};
  to.st_uid = owner;
  const auto* of = file_of(file);
  to.st_mode = of == nullptr ? S_IFDIR | mode : S_IFREG | 0600;
  if (of != nullptr) to.st_size = static_cast<off_t>(of->bytes.size());
  return 0;
}

int memory_files::change_mode(int, mode_t to) {
  if (fails(true)) return -1;
  mode = to;
  return done(0);
}

int memory_files::lock(int file) {
  if (fails(false)) return -1;
  auto* of = file_of(file);
  if (of->locked) return failed(EWOULDBLOCK);
  of->locked = true;
  return 0;
}

int memory_files::list(int, std::vector<std::string>& names) {
  if (fails(false)) return -1;
  for (const auto& [name, file] : names_)
    names.push_back(name);
  return 0;
}

ssize_t memory_files::read(int file, void* to, std::size_t n, off_t at) {
  if (fails(false)) return -1;
  const auto& bytes = file_of(file)->bytes;
  const auto from = std::min(bytes.size(), static_cast<std::size_t>(at));
  n = std::min(n, bytes.size() - from);
  std::memcpy(to, bytes.data() + from, n);
  return static_cast<ssize_t>(n);
}

ssize_t memory_files::write(int file, const void* from, std::size_t n, off_t at) {
  ++n_writes;
  const bool fail = fails(true);
  const int error = errno;
  if (fail && (!fail_after_half_ || ended_)) return -1;
  if (fail || ends_now_) n /= 2;
  auto& bytes = file_of(file)->bytes;
  const auto begin = static_cast<std::size_t>(at);
  if (bytes.size() < begin + n) bytes.resize(begin + n);
  std::memcpy(bytes.data() + begin, from, n);
  if (ends_now_) throw process_ended();
  if (fail && n == 0) return failed(error);
  // The write of the rest will fail, unless the disk is repaired before.
  if (fail) ++n_fails_, fail_after_half_ = false;
  return static_cast<ssize_t>(n);
}

int memory_files::truncate(int file, off_t bytes) {
  if (fails(true)) return -1;
  file_of(file)->bytes.resize(static_cast<std::size_t>(bytes));
  return done(0);
}

int memory_files::sync(int file) {
  ++n_syncs;
  if (fails(true)) return -1;
  if (auto* of = file_of(file)) {
    of->durable = of->bytes;
  } else {
    durable_names_ = names_;
    unsynced_names_.clear();
  }
  return done(0);
}

int memory_files::rename(int, const char* from, const char* to) {
  if (fails(true)) return -1;
  const auto found = names_.find(from);
  if (found == names_.end()) return done(-1, ENOENT);
  const auto file = found->second;
  names_.erase(found);
  names_[to] = file;
  unsynced_names_.push_back(names_);
  return done(0);
}

int memory_files::remove(int, const char* name) {
  if (fails(true)) return -1;
  if (names_.erase(name) == 0) return done(-1, ENOENT);
  unsynced_names_.push_back(names_);
  return done(0);
}

std::vector<std::string> memory_files::names() const {
  std::vector<std::string> all;
  for (const auto& [name, file] : names_)
    all.push_back(name);
  return all;
}

std::string& memory_files::bytes_of(const std::string& name) {
  exists_ = true;
  auto& file = names_[name];
  if (file == nullptr) file = std::make_shared<inode>();
  return file->bytes;
}

std::int64_t memory_files::bytes() const {
  std::int64_t all = 0;
  for (const auto& [name, file] : names_)
    all += static_cast<std::int64_t>(file->bytes.size());
  return all;
}

} // namespace twill::testing
