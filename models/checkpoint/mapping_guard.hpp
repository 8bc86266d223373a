// mapping_guard: turns SIGBUS in a mapped file into zeros and a count.
//
// A mapping raises SIGBUS where another process has shortened the file since, or where the disk
// cannot read a page. Checking the file's size beforehand would leave a race, and copying with
// pread() would give up what mappings are for: bytes that are packed from the page cache without a
// copy. So a handler puts zeros in the place of the rest of that mapping and counts a fault.
// Whoever reads a mapping compares the count before and after, and distrusts what was read in
// between.
//
// Threads: any. The handler is installed with the first guard; a SIGBUS elsewhere goes to the
// handler of before.
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
  /// To be destroyed before the memory is unmapped.
  ~mapping_guard();

  /// Faults of all mappings of this process so far.
  static std::uint64_t faults();

private:
  int slot_ = -1; ///< of the table that the handler searches; -1: it was full
};

/// What to say of files whose mapping had a fault.
inline constexpr const char* mapping_fault_words =
    "a file of the model was shortened, or its disk failed, while it was read";

} // namespace twill::models
