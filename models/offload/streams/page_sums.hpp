// page_sums: whether the pages of a store come back as they were written last.
//
// For stores whose pages are written again and again, in stretches that differ from those that are
// read: KV. Threads: any, as long as no page is noted and checked at once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/offload/streams/checksum.hpp"
#include "models/offload/streams/disk_store.hpp"
#include "models/offload/streams/read_checks.hpp"

namespace twill::models::offload {

class page_sums {
public:
  /// For a store of `bytes` bytes; `every`: see read_checks.
  explicit page_sums(std::int64_t bytes = 0, std::int32_t every = 1)
      : sums_(page_of(bytes), unwritten), checks_(every, sums_.size()) {}

  /// Offsets and sizes are whole pages, here and below.
  void note(std::int64_t offset, const unsigned char* data, std::int64_t bytes) {
    for (std::int64_t at = 0; at < bytes; at += store_alignment) {
      const std::size_t page = page_of(offset + at);
      sums_[page] = sum_of(data + at);
      checks_.written(page);
    }
  }

  /// To be called for every read. Offset of the first page that is not what was noted, among those
  /// whose turn it is; pages that never were may hold anything.
  std::optional<std::int64_t> first_wrong(std::int64_t offset, const unsigned char* data,
                                          std::int64_t bytes) {
    for (std::int64_t at = 0; at < bytes; at += store_alignment) {
      const std::size_t page = page_of(offset + at);
      if (sums_[page] != unwritten && checks_.due(page) && sums_[page] != sum_of(data + at))
        return offset + at;
    }
    return std::nullopt;
  }

private:
  static constexpr std::uint64_t unwritten = 0;
  static std::uint64_t sum_of(const unsigned char* page) {
    return checksum(page, store_alignment) | 1;
  }
  static std::size_t page_of(std::int64_t offset) {
    return static_cast<std::size_t>(offset / store_alignment);
  }

  std::vector<std::uint64_t> sums_; ///< one per page
  read_checks checks_;              ///< of the same
};

} // namespace twill::models::offload
