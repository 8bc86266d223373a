// disk_store: the disk tier's bytes, at aligned offsets.
//
// Thread safety: any number of threads at once, on bytes that no other thread is writing. Failures
// are values that name the file, the place and the system's reason: a full disk is file_unwritable;
// a short read (a truncated file) is file_unreadable, never a signal. A read that the disk fails is
// tried again for a third of a second, which is what a transient fault needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <sys/types.h>
#include <unistd.h>

#include "models/errc.hpp"

namespace twill::models::offload {

/// Offsets, sizes and addresses are multiples of this; direct reads need it.
inline constexpr std::int64_t store_alignment = 4096;

constexpr std::int64_t store_aligned(std::int64_t bytes) {
  return (bytes + store_alignment - 1) / store_alignment * store_alignment;
}

class disk_store {
public:
  virtual ~disk_store() = default;
  /// Takes space for [0, bytes) now where the store can, so that a disk which is too small is an
  /// error here and not at a later write. Bytes that were not written yet read as anything.
  virtual result<nothing> reserve(std::int64_t /*bytes*/) { return nothing{}; }
  virtual result<nothing> write(std::int64_t offset, const void* from, std::int64_t bytes) = 0;
  virtual result<nothing> read(std::int64_t offset, void* to, std::int64_t bytes) = 0;
  /// Tells the store that [offset, offset + bytes) will be read soon.
  virtual void prefetch(std::int64_t /*offset*/, std::int64_t /*bytes*/) {}
  /// For people: the path and how it is read.
  virtual std::string describe() const = 0;
};

/// Opens a file in `dir` and removes its name, so that nothing is left behind however the process
/// ends, and nobody can remove or shorten the file by accident. With `direct` reads go past the
/// page cache where the file system can do that, else through it with read-ahead.
/// `read_at` is pread(), unless a test brings a worse one.
using read_function = ssize_t (*)(int, void*, std::size_t, off_t);
result<std::unique_ptr<disk_store>> open_file_store(const std::string& dir, bool direct,
                                                    read_function read_at = ::pread);

/// Opens an existing file for reading only.
result<std::unique_ptr<disk_store>> open_stored_file(const std::string& path, bool direct);

/// A file that outlives the process.
struct kept_store {
  std::unique_ptr<disk_store> store;
  std::int64_t bytes = 0; ///< of the file as it was found; 0: it is new
};
/// Opens or makes the file `path`, which only this user may read (mode 0600) and which is no link.
/// What a file has beyond `most_bytes` is cut off.
/// It is locked for this process while the store lives: a file that another process has open is
/// file_unwritable.
result<kept_store>
open_kept_store(const std::string& path,
                std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max());

} // namespace twill::models::offload
