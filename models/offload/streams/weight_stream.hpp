// weight_stream: brings a decoder's streamed weights to the device. It joins a weight_placement and
// a weight_ring, which use the threads, the file and the memory budget of a tier_resources.
//
// Threads: call all functions on the thread that owns the device. While a model is loaded, call
// add_group() for each layer as soon as it is packed (or for its attention and its MLP, if these
// are transferred separately), then add_table() for embedding and head, then start(). In each
// forward pass, call begin_pass(), then acquire() and release() for each group in order. The stream
// owns placement and ring; the matrices that it places belong to the decoder. Failures: see
// disk_store, weight_placement and weight_ring.
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

  /// Stores each of `matrices` in its tier (device, host memory or disk). Those off the device form
  /// one transfer group, whose number is returned; -1 when all of them are kept on the device.
  result<std::int32_t> add_group(const std::vector<gpu::packed_matrix*>& matrices);
  /// Divides a table (embedding or output head) into parts no larger than a staging buffer and
  /// places each part in its tier. With `in_every_pass` (for a head), the streamed parts pass
  /// through the weight_ring after the layers in every pass. Call it after add_group() of all
  /// layers.
  result<nothing> add_table(const gpu::packed_matrix& table, bool in_every_pass,
                            std::vector<table_part>& parts);
  result<std::unique_ptr<embedding_cache>> rows_of(const gpu::packed_matrix& table,
                                                   const std::vector<table_part>& parts,
                                                   std::int64_t most_rows);
  /// Allocates the ring and begins to fill it.
  result<nothing> start();

  /// Begins a forward pass. Without `whole` the pass ends after the last layer, without the head.
  void begin_pass(bool whole);
  /// Waits until the group can be used, see weight_ring::acquire(). Group -1 stands for weights on
  /// the device and needs no waiting.
  result<nothing> acquire(std::int32_t group);
  void release(std::int32_t group);

  placed_bytes placed() const { return layout_.placed(); }
  std::int64_t ring_bytes() const { return layout_.ring_bytes(); }
  /// The transfers of layers, head and embedding rows so far.
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
  std::shared_ptr<disk_store> store_; ///< the store of resources_
  std::unique_ptr<weight_placement> placement_;
  std::vector<std::int32_t> order_; ///< the groups of a whole forward pass
  std::size_t n_layer_groups_ = 0;  ///< how many groups of order_ are layers
  std::unique_ptr<weight_ring> ring_;
  ring_stats rows_moved_;
  std::unique_ptr<io_pool> pool_; // last member, so that its tasks end before the members that they
                                  // use
};

} // namespace twill::models::offload
