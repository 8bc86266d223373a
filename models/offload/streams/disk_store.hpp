// disk_store: the interface to the storage of weights and KV that are kept on disk. It reads and
// writes bytes at aligned offsets.
//
// Thread safety: any number of threads may read and write at once, as long as no thread accesses
// bytes that another thread is writing. Failures are values whose text names the file, the offset
// and the system's error: a full disk is file_unwritable; a short read (a truncated file) is
// file_unreadable and never raises a signal. A failed read is retried for a third of a second, long
// enough for a transient fault to pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <sys/types.h>
#include <unistd.h>

#include "models/errc.hpp"

namespace twill::models::offload {

/// Offsets, sizes and addresses must be multiples of this number of bytes, because direct reads
/// require it.
inline constexpr std::int64_t store_alignment = 4096;

constexpr std::int64_t store_aligned(std::int64_t bytes) {
  return (bytes + store_alignment - 1) / store_alignment * store_alignment;
}

class disk_store {
public:
  virtual ~disk_store() = default;
  /// Allocates space for [0, bytes) if the store can, so that a disk which is too small fails here
  /// and not at a later write. Bytes that were never written may read as anything.
  virtual result<nothing> reserve(std::int64_t /*bytes*/) { return nothing{}; }
  virtual result<nothing> write(std::int64_t offset, const void* from, std::int64_t bytes) = 0;
  virtual result<nothing> read(std::int64_t offset, void* to, std::int64_t bytes) = 0;
  /// Tells the store that [offset, offset + bytes) will be read soon.
  virtual void prefetch(std::int64_t /*offset*/, std::int64_t /*bytes*/) {}
  /// A description for logs: the path and the way in which the store is read.
  virtual std::string describe() const = 0;
};

/// Opens the store of a disk tier.
using store_opener = std::function<result<std::unique_ptr<disk_store>>()>;

/// open_file_store() creates a file in `dir` and unlinks its name at once, so that no file is left
/// behind however the process ends, and nobody can remove or truncate the file by accident. With
/// `direct`, reads bypass the page cache if the file system supports that; otherwise they use it
/// with read-ahead. `read_at` is pread(); tests pass a function that fails.
using read_function = ssize_t (*)(int, void*, std::size_t, off_t);
result<std::unique_ptr<disk_store>> open_file_store(const std::string& dir, bool direct,
                                                    read_function read_at = ::pread);

/// Opens an existing file for reading only.
result<std::unique_ptr<disk_store>> open_stored_file(const std::string& path, bool direct);

/// A file that outlives the process.
struct kept_store {
  std::unique_ptr<disk_store> store;
  std::int64_t bytes = 0; ///< size of the file when it was opened; 0: the file is new
};
/// Opens the file `path`, or creates it so that only this user may read it (mode 0600). A symbolic
/// link is refused. A file longer than `most_bytes` is truncated to that size. The file stays
/// locked for this process until the store is destroyed; if another process has locked it, the
/// result is file_unwritable.
result<kept_store>
open_kept_store(const std::string& path,
                std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max());

} // namespace twill::models::offload
