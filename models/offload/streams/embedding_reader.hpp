// embedding_reader: reads single row blocks (16 rows) of an embedding whose parts are in host
// memory or on disk.
//
// Thread safety: read() may be called from any thread. The reader owns one checksum per block and
// checks bytes from the disk against it. The weight_placement, which owns the bytes, and the list
// of the table's parts must outlive the reader.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/linear/packed_matrix.hpp"
#include "models/offload/streams/weight_placement.hpp"

namespace twill::models::offload {

/// Consecutive row blocks of a table that form one transfer group of the placement.
struct table_part {
  std::int32_t group = -1;
  std::int64_t first_row = 0;
  gpu::packed_matrix matrix; ///< readable while its group is on the device
};

class embedding_reader {
public:
  static constexpr std::int64_t block_rows = 16;

  /// `packed` is the whole table; during the call its bytes must still be in host memory.
  embedding_reader(const weight_placement& placement, std::span<const table_part> parts,
                   const gpu::packed_matrix& packed);

  std::span<const table_part> parts() const { return parts_; }
  tier tier_of(const table_part& part) const { return only_location(part).where; }
  tier tier_of(std::int64_t block) const { return tier_of(part_of(block)); }
  /// Bytes of a block's codes and scales.
  std::int64_t block_bytes() const { return layout_.code_panel_bytes + layout_.scale_panel_bytes; }

  /// Copies a row block (its packed codes and scales) from host memory or disk to device memory.
  /// Must not be called for blocks that are kept on the device.
  result<nothing> read(std::int64_t block, unsigned char* codes, unsigned char* scales,
                       io_worker& worker) const;

private:
  const table_part& part_of(std::int64_t block) const;
  const weight_location& only_location(const table_part& part) const {
    return placement_.group(part.group).locations.front();
  }
  result<nothing> read_some(std::int64_t from, std::int64_t bytes, unsigned char* to,
                            std::vector<unsigned char>& copy, io_worker& worker) const;

  const weight_placement& placement_;
  std::span<const table_part> parts_;
  gpu::image_layout layout_;
  std::vector<std::uint64_t> sums_; ///< one per row block
};

} // namespace twill::models::offload
