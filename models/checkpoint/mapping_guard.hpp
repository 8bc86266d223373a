// mapping_guard: handles SIGBUS in a mapped file, so that reads give zeros and a fault is counted.
//
// Reading a mapping raises SIGBUS if another process has shortened the file, or if the disk cannot
// read a page. To check the file's size before each read would not suffice, because the file may
// shrink between check and read. Reading with pread() instead would copy all weights once more. The
// signal handler therefore replaces the rest of the mapping by zeros and counts a fault. Code that
// reads a mapping must compare the count before and after reading, and must discard what it read if
// the count has changed.
//
// Threads: any. The handler is installed with the first guard. It passes a SIGBUS outside of
// guarded mappings to the previously installed handler.
#pragma once

#include <cstddef>
#include <cstdint>

namespace twill::models {

class mapping_guard {
public:
  mapping_guard() = default;
  /// Guards [data, data + bytes), both whole pages of a mapping of this object's owner.
  mapping_guard(void* data, std::size_t bytes);
  mapping_guard(const mapping_guard&) = delete;
  mapping_guard& operator=(const mapping_guard&) = delete;
  /// The guard must be destroyed before the memory is unmapped.
  ~mapping_guard();

  /// Faults of all mappings of this process so far.
  static std::uint64_t faults();

private:
  int slot_ = -1; ///< index in the table that the handler searches; -1: the table was full
};

/// The message about a file whose mapping had a fault.
inline constexpr const char* mapping_fault_words =
    "a file of the model was shortened, or its disk failed, while it was read";

} // namespace twill::models
