// weight_layout: which weights go where and how much device memory those take that travel, from
// sizes alone. Pure: weight_stream asks it for everything, and so does who wants to know before.
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

  /// The homes of images that travel together: a layer's matrices, or those of half of one.
  std::vector<tier> add_group(std::span<const std::int64_t> image_bytes);

  /// A table cut into parts no larger than a buffer, each with a home of its own. With
  /// `in_every_pass` they pass through the ring. After the layers.
  struct table_cut {
    std::int64_t part_blocks = 0; ///< row blocks of each part but perhaps the last
    std::vector<tier> locations;  ///< of the parts
  };
  table_cut add_table(const gpu::image_layout& image, std::int64_t row_blocks, bool in_every_pass);

  placed_bytes locations() const { return homes_; }
  /// Slots of the ring, and its bytes.
  std::int32_t buffers() const;
  std::int64_t ring_bytes() const;

private:
  /// Returns the bytes of its buffer.
  std::int64_t add(std::span<const std::int64_t> image_bytes, std::span<const tier> where,
                   bool in_ring);

  shares shares_;
  std::int32_t ring_layers_;
  placed_bytes homes_;
  std::int64_t n_in_ring_ = 0;
  std::int64_t largest_slot_ = 0;  ///< of groups in the ring, aligned
  std::int64_t largest_away_ = 0;  ///< bytes of what travels of a layer, or of half of one
  std::int64_t largest_whole_ = 0; ///< and of all of one
};

/// Device memory of `disk` and `host` bytes of one group on their way.
std::int64_t staging_bytes_of(std::int64_t disk, std::int64_t host);

} // namespace twill::models::offload
