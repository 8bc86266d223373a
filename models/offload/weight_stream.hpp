// weight_stream: everything that makes a decoder's weights travel: homes, ring, threads, file.
//
// Threads: the device's. Loading: add_unit() for each layer, or for each half of one (attention,
// MLP) where these travel apart, as soon as it is packed, add_table()
// for embedding and head, start(). Stepping: the ring. Owns homes, ring, file and threads; the
// matrices that it places belong to the decoder. Failures: see block_store, weight_homes and
// weight_ring.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/device.hpp"
#include "gpu/linear/packed_matrix.hpp"
#include "models/offload/io_pool.hpp"
#include "models/offload/link_pacer.hpp"
#include "models/offload/options.hpp"
#include "models/offload/row_table.hpp"
#include "models/offload/weight_homes.hpp"
#include "models/offload/weight_layout.hpp"
#include "models/offload/weight_ring.hpp"

namespace twill::models::offload {

class weight_stream {
public:
  static result<std::unique_ptr<weight_stream>> open(gpu::device& dev,
                                                     const offload_options& options);

  /// Gives each of these matrices its home. Their unit, or -1 when all of them stay on the device.
  result<std::int32_t> add_unit(const std::vector<gpu::packed_matrix*>& matrices);
  /// Cuts a table into parts no larger than a slot and gives each its home. With
  /// `in_every_pass` they pass through the ring after the layers (a head). Call it after the
  /// layers.
  result<nothing> add_table(const gpu::packed_matrix& table, bool in_every_pass,
                            std::vector<table_part>& parts);
  result<std::unique_ptr<row_table>> rows_of(const gpu::packed_matrix& table,
                                             const std::vector<table_part>& parts,
                                             std::int64_t most_rows);
  /// Allocates the ring and begins to fill it.
  result<nothing> start();

  /// With `whole` false the pass ends with the last layer.
  void begin_pass(bool whole);
  /// A unit of -1 is always there.
  result<nothing> acquire(std::int32_t unit);
  void release(std::int32_t unit);

  tier_bytes homes_bytes() const { return layout_.homes(); }
  std::int64_t ring_bytes() const { return layout_.ring_bytes(); }
  /// Of layers, of the head and of embedding rows. On the device's thread.
  ring_stats stats() const;
  void record_to(timeline* t) {
    if (ring_) ring_->record_to(t);
  }

private:
  weight_stream(gpu::device& dev, const offload_options& options)
      : dev_(dev), options_(options), layout_(options), link_(options.link_bytes_per_second) {}
  bool travels(std::int32_t unit) const { return homes_->unit(unit).slot_bytes() > 0; }

  gpu::device& dev_;
  offload_options options_;
  weight_layout layout_;
  link_pacer link_;
  std::unique_ptr<block_store> store_;
  std::unique_ptr<weight_homes> homes_;
  std::vector<std::int32_t> order_; ///< units of a whole pass
  std::size_t n_layer_units_ = 0;   ///< of these, layers
  std::unique_ptr<weight_ring> ring_;
  ring_stats rows_moved_;
  std::unique_ptr<io_pool> pool_; // last: its threads end before what they use
};

} // namespace twill::models::offload
