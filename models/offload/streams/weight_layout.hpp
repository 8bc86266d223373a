// weight_layout: which weights go to which tier, and how much device memory the streamed ones take,
// from sizes alone. Pure. weight_stream follows it, and memory_estimate asks it beforehand.
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

  /// The tiers of matrices that travel together: those of a layer, or of its attention or MLP.
  std::vector<tier> add_group(std::span<const std::int64_t> image_bytes);

  /// Cuts a table into parts no larger than a staging buffer, each with a tier of its own. With
  /// `in_every_pass` the parts pass through the ring in every forward pass. Call it after the
  /// layers.
  struct table_cut {
    std::int64_t part_panels = 0; ///< row panels of each part; the last one may have fewer
    std::vector<tier> tiers;      ///< one per part
  };
  table_cut add_table(const gpu::image_layout& image, std::int64_t row_panels, bool in_every_pass);

  placed_bytes placed() const { return placed_; }
  /// Staging buffers of the ring.
  std::int32_t buffers() const;
  std::int64_t ring_bytes() const;

private:
  /// Returns the bytes of the staging buffer that these need.
  std::int64_t add(std::span<const std::int64_t> image_bytes, std::span<const tier> where,
                   bool in_ring);

  shares shares_;
  std::int32_t ring_layers_;
  placed_bytes placed_;
  std::int64_t n_in_ring_ = 0;
  std::int64_t largest_buffer_ = 0; ///< of groups in the ring, aligned
  std::int64_t largest_away_ = 0;   ///< streamed bytes of a layer, or of half of one
  std::int64_t largest_whole_ = 0;  ///< all bytes of a layer, or of half of one
};

/// Bytes of a staging buffer for a group with so many bytes on disk and in host memory.
std::int64_t staging_bytes_of(std::int64_t disk, std::int64_t host);

} // namespace twill::models::offload
