// weight_layout: computes from sizes alone which weights go to which tier, and how much device
// memory the buffers for streamed weights take. The functions are pure. weight_stream places
// weights by it; memory_estimate uses it to predict the memory before loading.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/linear/packed_matrix.hpp"
#include "models/offload/options.hpp"
#include "models/offload/tiers.hpp"

namespace twill::models::offload {

class weight_layout {
public:
  explicit weight_layout(const offload_options& options)
      : shares_(options.weights), ring_layers_(options.ring_layers) {}

  /// Adds a group of matrices that are transferred together (those of a layer, or of its attention
  /// or MLP) and returns the tier of each matrix.
  std::vector<tier> add_group(std::span<const std::int64_t> image_bytes);

  /// add_table() divides a table (embedding or output head) into parts no larger than a staging
  /// buffer and assigns a tier to each part. With `in_every_pass`, every forward pass uses the
  /// whole table, so its streamed parts pass through the buffers of the weight_ring like layers do.
  /// Call it after add_group() of all layers.
  struct table_cut {
    std::int64_t part_panels = 0; ///< row panels of each part; the last one may have fewer
    std::vector<tier> tiers;      ///< one per part
  };
  table_cut add_table(const gpu::image_layout& image, std::int64_t row_panels, bool in_every_pass);

  placed_bytes placed() const { return placed_; }
  /// The number of staging buffers of the ring.
  std::int32_t buffers() const;
  std::int64_t ring_bytes() const;

private:
  /// Adds matrices with given tiers. Returns the bytes of the staging buffer that they need.
  std::int64_t add(std::span<const std::int64_t> image_bytes, std::span<const tier> where,
                   bool in_ring);

  shares shares_;
  std::int32_t ring_layers_;
  placed_bytes placed_;
  std::int64_t n_in_ring_ = 0;
  std::int64_t largest_buffer_ = 0; ///< bytes of the largest staging buffer that a group in the
                                    ///< ring needs, aligned
  std::int64_t largest_away_ = 0;   ///< streamed bytes of a layer, or of half of one
  std::int64_t largest_whole_ = 0;  ///< all bytes of a layer, or of half of one
};

/// Bytes of the staging buffer of a group that has `disk` bytes on disk and `host` bytes in host
/// memory.
std::int64_t staging_bytes_of(std::int64_t disk, std::int64_t host);

} // namespace twill::models::offload
