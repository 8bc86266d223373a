// file_ops: the system calls that stored responses use. Tests replace the class to simulate faults,
// crashes and power failures.
//
// Thread safety: any thread may call all functions, as it may call the system calls. Each function
// is the system call named in its comment and returns the call's result: -1 with errno set on
// failure. The callers repeat interrupted reads and writes.
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
  /// open() for a folder.
  virtual int open_folder(const char* path);
  /// openat(), with mode 0600 for a new file. The call does not follow a symbolic link and does not
  /// block on a pipe.
  virtual int open(int folder, const char* name, int flags);
  virtual int close(int file);
  /// fstat().
  virtual int status(int file, struct stat& to);
  /// fchmod().
  virtual int change_mode(int file, mode_t mode);
  /// flock(), exclusive and non-blocking.
  virtual int lock(int file);
  /// Lists the names in a folder, except "." and "..".
  virtual int list(int folder, std::vector<std::string>& names);
  /// pread().
  virtual ssize_t read(int file, void* to, std::size_t n, off_t at);
  /// pwrite().
  virtual ssize_t write(int file, const void* from, std::size_t n, off_t at);
  /// ftruncate().
  virtual int truncate(int file, off_t bytes);
  /// fsync().
  virtual int sync(int file);
  /// renameat() within one folder.
  virtual int rename(int folder, const char* from, const char* to);
  /// unlinkat().
  virtual int remove(int folder, const char* name);
};

/// The implementation that calls the operating system.
file_ops& system_files();

/// Owns an open file or folder, or none, and closes it in the destructor.
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
  /// Closes the file now. Some file systems report failed writes only when the file is closed, so
  /// the result should be checked.
  int close() { return is_open() ? ops_->close(std::exchange(file_, -1)) : 0; }

private:
  file_ops* ops_ = nullptr;
  int file_ = -1;
};

} // namespace twill::net
