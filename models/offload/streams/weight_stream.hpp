// weight_stream: everything that brings a decoder's streamed weights to the device: placement and
// ring over the threads, the file and the budget of its tier_resources.
//
// Threads: all calls belong to the device's thread. While a model is loaded: add_group() for each
// layer (or for its attention and its MLP where these travel apart) as soon as it is packed,
// add_table() for embedding and head, then start(). In each forward pass: begin_pass(), then
// acquire() and release() of each group in order. Owns placement and ring; the
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
  ~weight_stream();

  /// Places each of these matrices in its tier. Returns their group, or -1 when all of them live on
  /// the device.
  result<std::int32_t> add_group(const std::vector<gpu::packed_matrix*>& matrices);
  /// Cuts a table into parts no larger than a staging buffer and places each in its tier. With
  /// `in_every_pass` (a head) the parts pass through the ring after the layers. Call it after the
  /// layers.
  result<nothing> add_table(const gpu::packed_matrix& table, bool in_every_pass,
                            std::vector<table_part>& parts);
  result<std::unique_ptr<embedding_cache>> rows_of(const gpu::packed_matrix& table,
                                                   const std::vector<table_part>& parts,
                                                   std::int64_t most_rows);
  /// Allocates the ring and begins to fill it.
  result<nothing> start();

  /// Begins a forward pass; without `whole` it ends with the last layer.
  void begin_pass(bool whole);
  /// Group -1 needs no waiting.
  result<nothing> acquire(std::int32_t group);
  void release(std::int32_t group);

  placed_bytes placed() const { return layout_.placed(); }
  std::int64_t ring_bytes() const { return layout_.ring_bytes(); }
  /// What moved of layers, head and embedding rows.
  ring_stats stats() const;
  void record_to(span_recorder* t, bool uses) {
    if (ring_) ring_->record_to(t, uses);
  }

private:
  weight_stream(gpu::device& dev, const offload_options& options)
      : dev_(dev), options_(options), layout_(options), link_(options.link_bytes_per_second) {}
  bool travels(std::int32_t group) const { return placement_->group(group).staging_bytes() > 0; }

  gpu::device& dev_;
  offload_options options_;
  weight_layout layout_;
  link_pacer link_;
  std::shared_ptr<tier_resources> resources_;
  std::shared_ptr<disk_store> store_; ///< theirs
  std::unique_ptr<weight_placement> placement_;
  std::vector<std::int32_t> order_; ///< the groups of a whole forward pass
  std::size_t n_layer_groups_ = 0;  ///< how many of them are layers
  std::unique_ptr<weight_ring> ring_;
  ring_stats rows_moved_;
  std::unique_ptr<io_pool> pool_; // last: its tasks end before what they use
};

} // namespace twill::models::offload
