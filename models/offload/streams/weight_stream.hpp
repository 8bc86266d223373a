// weight_stream: everything that makes a decoder's weights travel: homes, ring, threads, file.
//
// Threads: the device's. Loading: add_group() for each layer, or for each half of one (attention,
// MLP) where these travel apart, as soon as it is packed, add_table()
// for embedding and head, start(). Stepping: the ring. Owns homes, ring, file and threads; the
// matrices that it places belong to the decoder. Failures: see disk_store, weight_placement and
// weight_ring.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/device.hpp"
#include "gpu/linear/packed_matrix.hpp"
#include "models/offload/options.hpp"
#include "models/offload/streams/embedding_cache.hpp"
#include "models/offload/streams/io_pool.hpp"
#include "models/offload/streams/link_pacer.hpp"
#include "models/offload/streams/weight_layout.hpp"
#include "models/offload/streams/weight_placement.hpp"
#include "models/offload/streams/weight_ring.hpp"

namespace twill::models::offload {

class weight_stream {
public:
  static result<std::unique_ptr<weight_stream>> open(gpu::device& dev,
                                                     const offload_options& options);

  /// Gives each of these matrices its home. Their group, or -1 when all of them stay on the device.
  result<std::int32_t> add_group(const std::vector<gpu::packed_matrix*>& matrices);
  /// Cuts a table into parts no larger than a buffer and gives each its home. With
  /// `in_every_pass` they pass through the ring after the layers (a head). Call it after the
  /// layers.
  result<nothing> add_table(const gpu::packed_matrix& table, bool in_every_pass,
                            std::vector<table_part>& parts);
  result<std::unique_ptr<embedding_cache>> rows_of(const gpu::packed_matrix& table,
                                                   const std::vector<table_part>& parts,
                                                   std::int64_t most_rows);
  /// Allocates the ring and begins to fill it.
  result<nothing> start();

  /// With `whole` false the pass ends with the last layer.
  void begin_pass(bool whole);
  /// A group of -1 is always there.
  result<nothing> acquire(std::int32_t group);
  void release(std::int32_t group);

  placed_bytes homes_bytes() const { return layout_.locations(); }
  std::int64_t ring_bytes() const { return layout_.ring_bytes(); }
  /// Of layers, of the head and of embedding rows. On the device's thread.
  ring_stats stats() const;
  void record_to(span_recorder* t) {
    if (ring_) ring_->record_to(t);
  }

private:
  weight_stream(gpu::device& dev, const offload_options& options)
      : dev_(dev), options_(options), layout_(options), link_(options.link_bytes_per_second) {}
  bool travels(std::int32_t group) const { return homes_->group(group).staging_bytes() > 0; }

  gpu::device& dev_;
  offload_options options_;
  weight_layout layout_;
  link_pacer link_;
  std::unique_ptr<disk_store> store_;
  std::unique_ptr<weight_placement> homes_;
  std::vector<std::int32_t> order_; ///< groups of a whole pass
  std::size_t n_layer_groups_ = 0;  ///< of these, layers
  std::unique_ptr<weight_ring> ring_;
  ring_stats rows_moved_;
  std::unique_ptr<io_pool> pool_; // last: its threads end before what they use
};

} // namespace twill::models::offload
