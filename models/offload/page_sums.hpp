// page_sums: whether the pages of a store come back as they were written last.
//
// For stores whose pages are written again and again, in stretches that differ from those that are
// read: KV. Threads: any, as long as no page is noted and checked at once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/offload/block_store.hpp"
#include "models/offload/checksum.hpp"

namespace twill::models::offload {

class page_sums {
public:
  /// For a store of `bytes` bytes.
  explicit page_sums(std::int64_t bytes = 0)
      : sums_(static_cast<std::size_t>(bytes / store_alignment), unwritten) {}

  /// Offsets and sizes are whole pages, here and below.
  void note(std::int64_t offset, const unsigned char* data, std::int64_t bytes) {
    for (std::int64_t at = 0; at < bytes; at += store_alignment)
      of(offset + at) = sum_of(data + at);
  }

  /// Offset of the first page that is not what was noted; pages that never were may hold anything.
  std::optional<std::int64_t> first_wrong(std::int64_t offset, const unsigned char* data,
                                          std::int64_t bytes) {
    for (std::int64_t at = 0; at < bytes; at += store_alignment)
      if (of(offset + at) != unwritten && of(offset + at) != sum_of(data + at)) return offset + at;
    return std::nullopt;
  }

private:
  static constexpr std::uint64_t unwritten = 0;
  static std::uint64_t sum_of(const unsigned char* page) {
    return checksum(page, store_alignment) | 1;
  }
  std::uint64_t& of(std::int64_t offset) {
    return sums_[static_cast<std::size_t>(offset / store_alignment)];
  }

  std::vector<std::uint64_t> sums_; ///< one per page
};

} // namespace twill::models::offload
