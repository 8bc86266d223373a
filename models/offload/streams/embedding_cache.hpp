// embedding_cache: provides rows of a token embedding that is not in device memory as a whole.
//
// It fetches only the row blocks (16 rows each) that a step's tokens need into a small table on the
// device, and keeps a block there until another block needs its place. Reading a row from the small
// table gives the same bits as reading it from the whole table. Threads: call all functions on the
// thread that owns the device; io_pool's workers fetch blocks.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "gpu/copy_stream.hpp"
#include "gpu/device.hpp"
#include "gpu/linear/packed_matrix.hpp"
#include "models/offload/streams/embedding_reader.hpp"
#include "models/offload/streams/weight_ring.hpp"

namespace twill::models::offload {

class embedding_cache {
public:
  /// `packed` is the whole table; during the call its bytes must still be in host memory. Fetched
  /// bytes and waiting times are added to `moved`. `parts`, `moved` and the pool must outlive the
  /// cache.
  static result<std::unique_ptr<embedding_cache>>
  create(gpu::device& dev, const weight_placement& placement, io_pool& pool,
         const gpu::packed_matrix& packed, std::span<const table_part> parts,
         std::int64_t most_rows, ring_stats& moved);
  /// Device memory that create() takes for a table of `row_panels` row blocks.
  static std::int64_t device_bytes(const gpu::image_layout& image, std::int64_t row_panels,
                                   std::int64_t most_rows);
  /// Waits for running fetches to end.
  ~embedding_cache();

  /// Announces the rows that the next calls of rows() will ask for, in order. This replaces any
  /// earlier announcement. Their row blocks are fetched now as far as the small table has room; the
  /// remaining blocks are fetched after later calls of rows().
  void prefetch(std::span<const std::int32_t> ids);
  /// Writes the rows `ids` to `out` as f32. There may be at most `most_rows` ids, each below the
  /// number of rows of the table. // out: (ids, cols)
  result<nothing> rows(gpu::device& dev, std::span<const std::int32_t> ids, gpu::tensor_ref out);

private:
  struct entry {
    std::int64_t block = -1; ///< the table's row block in this entry; -1: none
    bool filling = false;
    bool expected = false;
    std::uint64_t last = 0; ///< the number of the rows() call that wanted the block last
    std::optional<failure> why;
  };

  embedding_cache(embedding_reader reader, io_pool& pool, ring_stats& moved)
      : reader_(std::move(reader)), pool_(pool), moved_(moved) {}
  void add_rows(gpu::device& dev, const gpu::packed_matrix& table, gpu::tensor_ref out);
  std::vector<std::int64_t> travelling_blocks(std::span<const std::int32_t> ids) const;
  std::int64_t entry_with(std::int64_t block) const;
  std::int64_t idle_entry(std::span<const std::int64_t> keep, bool expected_too) const;
  result<nothing> bring(std::span<const std::int64_t> blocks);
  void fetch_ahead();
  void claim(std::int64_t at, std::int64_t block);
  void post_fetches(const std::vector<std::int64_t>& claimed);
  void fetch(std::int64_t at, io_worker& worker);

  embedding_reader reader_;
  io_pool& pool_;
  ring_stats& moved_;
  gpu::packed_matrix small_;
  gpu::buffer small_image_;
  gpu::buffer ids_; // (most_rows) i32
  gpu::marker last_use_;
  std::vector<std::int32_t> wanted_; ///< row numbers within one table; -1: the row is in another
  bool first_ = true;

  mutable std::mutex mutex_; ///< guards the entries
  std::condition_variable filled_;
  std::vector<entry> entries_; ///< one entry per row block of the small table
  std::uint64_t now_ = 0;
  std::deque<std::int64_t> coming_; ///< announced blocks that have no entry yet
};

} // namespace twill::models::offload
