// mapped_file: a whole file mapped read-only.
//
// Immutable; any thread may read bytes(). Addresses stay valid while the object lives. If another
// process shortens the file, or the disk fails, reads give zeros and a fault is counted (see
// mapping_guard.hpp). Code that reads large parts must therefore check the number of faults
// afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "models/checkpoint/mapping_guard.hpp"
#include "models/errc.hpp"

namespace twill::models {

class mapped_file {
public:
  /// Fails with file_unreadable for all but regular, non-empty files.
  static result<std::shared_ptr<const mapped_file>> open(const std::string& path);
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  ~mapped_file();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  /// The file's identity and times from fstat() when it was opened; times in nanoseconds.
  struct file_state {
    std::uint64_t device = 0, number = 0;
    std::int64_t modified_ns = 0, changed_ns = 0;
    bool operator==(const file_state&) const = default;
  };
  const file_state& state() const { return state_; }
  /// Whether the file was written to since it was opened, so that bytes() may have changed. If the
  /// file was replaced by another one or removed, the mapped bytes have not changed.
  bool written_since() const;

  /// Asks the system to read `part` of bytes(), and what follows it, in the background.
  void read_ahead(std::span<const std::byte> part) const;
  /// Removes the whole pages of `part` of bytes() from this process's memory. They are read again,
  /// from the system's cache or from the disk, when they are touched.
  void release(std::span<const std::byte> part) const;

private:
  mapped_file() = default;

  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  file_state state_;
  std::unique_ptr<mapping_guard> guard_;
};

} // namespace twill::models
