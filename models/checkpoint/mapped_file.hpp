// mapped_file: a whole file mapped read-only.
//
// Immutable; any thread may read bytes(). Addresses stay valid while the object lives. A file that
// another process shortens while it is mapped ends this process with SIGBUS, as with any mapping.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "models/errc.hpp"

namespace twill::models {

class mapped_file {
public:
  /// Refuses what is not a regular, non-empty file (file_unreadable).
  static result<std::shared_ptr<const mapped_file>> open(const std::string& path);
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  ~mapped_file();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  /// Asks for `part` of bytes() and what follows it to be read ahead, in the background.
  void read_ahead(std::span<const std::byte> part) const;
  /// `part` of bytes() will not be read again soon: its whole pages leave this process's memory.
  /// They are read anew, from the system's cache or the disk, when they are touched after all.
  void release(std::span<const std::byte> part) const;

private:
  mapped_file() = default;

  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

} // namespace twill::models
