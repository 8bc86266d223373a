#include "models/offload/streams/weight_layout.hpp"

#include <algorithm>
#include <numeric>

#include "models/offload/streams/disk_store.hpp"

namespace twill::models::offload {

std::int64_t staging_bytes_of(std::int64_t disk, std::int64_t host) {
  return store_aligned(disk) + host;
}

std::int64_t weight_layout::add(std::span<const std::int64_t> image_bytes,
                                std::span<const tier> where, bool in_ring) {
  std::int64_t disk = 0, host = 0;
  for (std::size_t i = 0; i < where.size(); ++i) {
    if (where[i] == tier::device)
      placed_.device += image_bytes[i];
    else
      (where[i] == tier::disk ? disk : host) += image_bytes[i];
  }
  placed_.disk += store_aligned(disk);
  placed_.host += host;
  const std::int64_t buffer = staging_bytes_of(disk, host);
  if (in_ring && buffer > 0) {
    largest_buffer_ = std::max(largest_buffer_, store_aligned(buffer));
    ++n_in_ring_;
  }
  return buffer;
}

std::vector<tier> weight_layout::add_group(std::span<const std::int64_t> image_bytes) {
  const std::vector<tier> where = assign_tiers(image_bytes, shares_, placed_);
  const std::int64_t all = std::accumulate(image_bytes.begin(), image_bytes.end(), std::int64_t{0});
  largest_whole_ = std::max(largest_whole_, all);
  largest_away_ = std::max(largest_away_, add(image_bytes, where, true));
  return where;
}

weight_layout::table_cut weight_layout::add_table(const gpu::image_layout& image,
                                                  std::int64_t row_panels, bool in_every_pass) {
  const std::int64_t limit = largest_away_ > 0 ? largest_away_ : largest_whole_;
  table_cut cut;
  cut.part_panels = std::max<std::int64_t>(1, limit / image.bytes(1));
  std::vector<std::int64_t> sizes;
  for (std::int64_t first = 0; first < row_panels; first += cut.part_panels)
    sizes.push_back(image.bytes(std::min(cut.part_panels, row_panels - first)));
  cut.tiers = assign_tiers(sizes, shares_, placed_);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    add({&sizes[i], 1}, {&cut.tiers[i], 1}, in_every_pass);
  return cut;
}

/// Returns the number of staging buffers on the device through which streamed weights pass. On the
/// device, the weights may take their planned share plus the memory of `ring_layers` whole layers
/// (or halves of layers). What they really take differs from this for two reasons: layers that are
/// partly on the device need smaller staging buffers, and matrices are not divided between tiers,
/// so the resident weights differ from their share. Memory that is left over is used for more
/// buffers. If memory is missing, there are fewer buffers, but at least `ring_layers`. There are
/// never more buffers than groups that use them.
std::int32_t weight_layout::buffers() const {
  if (n_in_ring_ == 0) return 0;
  std::int64_t most = 1;
  if (ring_layers_ > 1) {
    const std::int64_t meant =
        (placed_.device + placed_.host + placed_.disk) * shares_.device / 100;
    const std::int64_t room = meant - placed_.device + ring_layers_ * largest_whole_;
    most = std::max<std::int64_t>(ring_layers_, room / largest_buffer_);
  }
  return static_cast<std::int32_t>(std::min(most, n_in_ring_));
}

std::int64_t weight_layout::ring_bytes() const {
  return buffers() * largest_buffer_;
}

} // namespace twill::models::offload
