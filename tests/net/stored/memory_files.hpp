// memory_files: a folder in memory that replaces the system calls of stored responses, and in which
// any call can fail, end the process or be followed by a power failure.
//
// It is used by one thread. The contents of files and the names in the folder are kept twice: as
// running programs see them, and as far as sync() made them durable. The end of the process loses
// nothing that programs have seen. A power failure keeps what is durable and, of what was not
// synced, as much as the test asks for. Names become durable in the order in which they changed, as
// in the journal of a file system.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/stored/file_ops.hpp"

namespace twill::testing {

/// Thrown out of the call at which the process ends.
struct process_ended {};

/// What a power failure leaves of bytes that were not synced.
enum class unsynced_bytes { none, half, all, zeros };
constexpr unsynced_bytes all_unsynced_bytes[] = {unsynced_bytes::none, unsynced_bytes::half,
                                                 unsynced_bytes::all, unsynced_bytes::zeros};

class memory_files final : public net::file_ops {
public:
  memory_files();
  /// A copy of the disk, as seen by a process that has nothing open.
  memory_files disk_copy() const;
  /// The disk after a power failure that kept the first `n_names` of the unsynced changes of names.
  memory_files after_power_failure(unsynced_bytes bytes, std::size_t n_names) const;
  std::size_t n_unsynced_names() const { return unsynced_names_.size(); }

  /// Ends the process at the `call`-th modifying call from now. With `in_middle` the process ends
  /// in the middle of a write, or at the end of any other call; without it, before the call.
  void end_at(int call, bool in_middle) {
    end_at_ = call;
    end_in_middle_ = in_middle;
  }
  /// From the `call`-th call on, `n` calls of any kind but close() fail with `error`. A failing
  /// write may write half of its bytes first.
  void fail_at(int call, int n, int error, bool after_half = false) {
    fail_at_ = call;
    n_fails_ = n;
    error_ = error;
    fail_after_half_ = after_half;
  }
  void repair() { n_fails_ = 0; }
  bool has_failed() const { return has_failed_; }

  int make_folder(const char* path) override;
  int open_folder(const char* path) override;
  int open(int folder, const char* name, int flags) override;
  int close(int file) override;
  int status(int file, struct stat& to) override;
  int change_mode(int file, mode_t mode) override;
  int lock(int file) override;
  int list(int folder, std::vector<std::string>& names) override;
  ssize_t read(int file, void* to, std::size_t n, off_t at) override;
  ssize_t write(int file, const void* from, std::size_t n, off_t at) override;
  int truncate(int file, off_t bytes) override;
  int sync(int file) override;
  int rename(int folder, const char* from, const char* to) override;
  int remove(int folder, const char* name) override;

  std::vector<std::string> names() const;
  /// The bytes of a file, to be read or changed. Makes an empty file if there is none.
  std::string& bytes_of(const std::string& name);
  /// The bytes of all files together.
  std::int64_t bytes() const;
  uid_t owner; ///< the folder's owner; at first the process's user
  mode_t mode = 0700;
  int n_writes = 0;
  int n_syncs = 0;

private:
  struct inode {
    std::string bytes;
    std::string durable;
    bool locked = false;
  };
  using name_map = std::map<std::string, std::shared_ptr<inode>>;

  bool fails(bool changes);
  int done(int result, int error = 0);
  inode* file_of(int file);

  bool exists_ = false;
  name_map names_;
  name_map durable_names_;
  std::vector<name_map> unsynced_names_;       ///< after each change since the folder was synced
  std::map<int, std::shared_ptr<inode>> open_; ///< null: the folder
  int next_file_ = 3;

  bool ended_ = false;
  int end_at_ = -1;
  bool end_in_middle_ = false;
  bool ends_now_ = false; ///< the process ends in the middle of this call
  int fail_at_ = 0;
  int n_fails_ = 0;
  int error_ = 0;
  bool fail_after_half_ = false;
  bool has_failed_ = false;
};

} // namespace twill::testing
