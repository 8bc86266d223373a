// page_sums: checksums of the pages of a disk_store, to detect a page that is read differently from
// how it was last written.
//
// It is made for KV, whose pages are written again and again, in ranges other than those that are
// read. Threads: any, as long as no page is passed to note() and first_wrong() at the same time.
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

  /// Records the checksums of pages that are being written. In all functions, `offset` and `bytes`
  /// must be multiples of store_alignment, the size of a page.
  void note(std::int64_t offset, const unsigned char* data, std::int64_t bytes) {
    for (std::int64_t at = 0; at < bytes; at += store_alignment) {
      const std::size_t page = page_of(offset + at);
      sums_[page] = sum_of(data + at);
      checks_.written(page);
    }
  }

  /// Must be called for every read. Compares checksums of the pages with those that were recorded,
  /// each page at its first read after a write and then at one read in `every` (see read_checks).
  /// Returns the offset of the first page that differs. Pages that were never written are not
  /// compared.
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
  read_checks checks_;              ///< which reads of a page are compared
};

} // namespace twill::models::offload
