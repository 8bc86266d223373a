// file_ops: the system calls of stored responses. Tests put faults, crashes and power failures in
// their place.
//
// Thread safety: any thread, as the calls themselves. Each function is the system call whose name
// it says, and returns what that returns: -1 with errno on failure. Interrupted reads and writes
// are repeated by their callers.
#pragma once

#include <string>
#include <sys/stat.h>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace twill::net {

class file_ops {
public:
  virtual ~file_ops() = default;
  /// mkdir(), mode 0700.
  virtual int make_folder(const char* path);
  /// open() of a folder.
  virtual int open_folder(const char* path);
  /// openat(), mode 0600 for a new file. A link is not followed, nor a pipe waited for.
  virtual int open(int folder, const char* name, int flags);
  virtual int close(int file);
  /// fstat().
  virtual int status(int file, struct stat& to);
  /// fchmod().
  virtual int change_mode(int file, mode_t mode);
  /// flock(), exclusive and without waiting.
  virtual int lock(int file);
  /// The names in a folder, "." and ".." left out.
  virtual int list(int folder, std::vector<std::string>& names);
  /// pread().
  virtual ssize_t read(int file, void* to, std::size_t n, off_t at);
  /// pwrite().
  virtual ssize_t write(int file, const void* from, std::size_t n, off_t at);
  /// ftruncate().
  virtual int truncate(int file, off_t bytes);
  /// fsync().
  virtual int sync(int file);
  /// renameat() in one folder.
  virtual int rename(int folder, const char* from, const char* to);
  /// unlinkat().
  virtual int remove(int folder, const char* name);
};

/// The operating system's own.
file_ops& system_files();

/// An open file or folder, or none; closes it at the end.
class file_handle {
public:
  file_handle() = default;
  file_handle(file_ops& ops, int file) : ops_(&ops), file_(file) {}
  file_handle(file_handle&& other) noexcept
      : ops_(other.ops_), file_(std::exchange(other.file_, -1)) {}
  file_handle& operator=(file_handle&& other) noexcept {
    std::swap(ops_, other.ops_);
    std::swap(file_, other.file_);
    return *this;
  }
  ~file_handle() { static_cast<void>(close()); }

  bool is_open() const { return file_ >= 0; }
  int get() const { return file_; }
  /// Closes it now: some file systems tell only here that bytes were not written.
  int close() { return is_open() ? ops_->close(std::exchange(file_, -1)) : 0; }

private:
  file_ops* ops_ = nullptr;
  int file_ = -1;
};

} // namespace twill::net
