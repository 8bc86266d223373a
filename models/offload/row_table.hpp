// row_table: rows of a matrix that does not live in device memory as a whole: token embeddings.
//
// Only the row blocks that a step's tokens need are brought, into a small table of their own; the
// op that reads them and its results are those of a whole table. Threads: the device's; io_pool's
// workers fetch. Each block read from the disk is checked against its sum.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpu/copies.hpp"
#include "gpu/device.hpp"
#include "gpu/ops/linear.hpp"
#include "models/offload/weight_homes.hpp"
#include "models/offload/weight_ring.hpp"

namespace twill::models::offload {

/// Some row blocks of a table, one unit of the homes.
struct table_part {
  std::int32_t unit = -1;
  std::int64_t first_row = 0;
  gpu::packed_matrix matrix; ///< readable while its unit is on the device
};

class row_table {
public:
  /// `packed` is the whole table, its bytes still on the host; `parts` and `moved`, to which the
  /// bytes of rows are added, outlive this.
  static result<std::unique_ptr<row_table>> create(gpu::device& dev, const weight_homes& homes,
                                                   io_pool& pool, const gpu::packed_matrix& packed,
                                                   std::span<const table_part> parts,
                                                   std::int64_t most_rows, ring_stats& moved);

  /// Rows `ids`, each within the table, as f32; at most `most_rows`. // out: (ids, cols)
  result<nothing> rows(gpu::device& dev, std::span<const std::int32_t> ids, gpu::tensor_ref out);

private:
  row_table(const weight_homes& homes, io_pool& pool, std::span<const table_part> parts,
            ring_stats& moved)
      : homes_(homes), pool_(pool), parts_(parts), moved_(moved) {}
  const table_part& part_of(std::int64_t block) const;
  const home& home_of(const table_part& part) const { return homes_.unit(part.unit).homes.front(); }
  void add_rows(gpu::device& dev, const gpu::packed_matrix& table, gpu::tensor_ref out);
  result<nothing> fetch(std::span<const std::int64_t> blocks);
  result<nothing> fetch_block(std::int64_t block, std::int64_t to, io_worker& worker) const;
  result<nothing> read_some(std::int64_t from, std::int64_t bytes, std::int64_t to,
                            std::vector<unsigned char>& copy, io_worker& worker) const;

  const weight_homes& homes_;
  io_pool& pool_;
  std::span<const table_part> parts_;
  ring_stats& moved_;
  gpu::image_layout layout_;
  std::vector<std::uint64_t> sums_; ///< one per row block
  std::int64_t capacity_ = 0;       ///< blocks of the small table
  gpu::packed_matrix small_;
  gpu::buffer small_image_;
  gpu::buffer ids_; // (most_rows) i32
  gpu::marker last_use_;
  std::vector<std::int32_t> wanted_; ///< ids as the table at hand numbers them, -1: not in it
  bool first_ = true;
};

} // namespace twill::models::offload
