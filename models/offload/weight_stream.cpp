#include "models/offload/weight_stream.hpp"

#include <algorithm>
#include <utility>

#include "gpu/host/machine.hpp"
#include "models/offload/tiers.hpp"

namespace twill::models::offload {

result<std::unique_ptr<weight_stream>> weight_stream::open(gpu::device& dev,
                                                           const offload_options& options) {
  std::unique_ptr<weight_stream> stream(new weight_stream(dev, options));
  auto pool = io_pool::start(options.io_threads);
  if (!pool.ok()) return pool.error();
  stream->pool_ = std::move(pool).value();
  if (options.weights.device + options.weights.host < 100) {
    auto store = options.open_store ? options.open_store()
                                    : open_file_store(options.dir, options.direct_reads);
    if (!store.ok()) return store.error();
    stream->store_ = std::move(store).value();
  }
  const std::int64_t host =
      options.host_bytes > 0 ? options.host_bytes : gpu::host::available_bytes();
  stream->homes_ = std::make_unique<weight_homes>(
      dev, stream->store_.get(), host, options.verify_every, stream->link_, options.pin_host);
  return stream;
}

result<std::int32_t> weight_stream::add_unit(const std::vector<gpu::packed_matrix*>& matrices) {
  std::vector<piece> pieces;
  std::vector<std::int64_t> sizes;
  for (gpu::packed_matrix* m : matrices) {
    pieces.push_back({m, 0, m});
    sizes.push_back(m->layout().bytes(m->row_blocks()));
  }
  auto unit = homes_->add(pieces, assign_tiers(sizes, options_.weights, homes_->bytes()));
  if (!unit.ok()) return unit;
  std::int64_t all = 0;
  for (const std::int64_t bytes : sizes)
    all += bytes;
  for (gpu::packed_matrix* m : matrices)
    m->drop_host_bytes();
  largest_whole_ = std::max(largest_whole_, all);
  if (!travels(unit.value())) return -1;
  largest_away_ = std::max(largest_away_, homes_->unit(unit.value()).slot_bytes());
  order_.push_back(unit.value());
  n_layer_units_ = order_.size();
  return unit;
}

result<nothing> weight_stream::add_table(const gpu::packed_matrix& table, bool in_every_pass,
                                         std::vector<table_part>& parts) {
  const std::int64_t limit = largest_away_ > 0 ? largest_away_ : largest_whole_;
  const std::int64_t block = table.layout().bytes(1);
  const std::int64_t blocks_each = std::max<std::int64_t>(1, limit / block);
  const std::int64_t total = table.row_blocks();
  std::vector<std::int64_t> sizes;
  for (std::int64_t first = 0; first < total; first += blocks_each) {
    table_part part;
    part.first_row = 16 * first;
    part.matrix = table.like(std::min(table.rows() - part.first_row, 16 * blocks_each));
    sizes.push_back(table.layout().bytes(part.matrix.row_blocks()));
    parts.push_back(std::move(part));
  }
  const auto where = assign_tiers(sizes, options_.weights, homes_->bytes());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto unit = homes_->add({{&table, parts[i].first_row / 16, &parts[i].matrix}}, {where[i]});
    if (!unit.ok()) return unit.error();
    parts[i].unit = unit.value();
    if (in_every_pass && travels(unit.value())) order_.push_back(unit.value());
  }
  return nothing{};
}

result<std::unique_ptr<row_table>> weight_stream::rows_of(const gpu::packed_matrix& table,
                                                          const std::vector<table_part>& parts,
                                                          std::int64_t most_rows) {
  return row_table::create(dev_, *homes_, *pool_, table, parts, most_rows, rows_moved_);
}

result<nothing> weight_stream::start() {
  if (order_.empty()) return nothing{};
  const std::int32_t slots = affordable_slots();
  ring_bytes_ = weight_ring::bytes(*homes_, order_, slots);
  auto ring = weight_ring::create(dev_, *homes_, *pool_, order_, slots);
  if (!ring.ok()) return ring.error();
  ring_ = std::move(ring).value();
  return nothing{};
}

/// The device's share of the weights and the memory of `ring_layers` whole layers (or halves) is
/// what is taken in all. Layers that are in part on the device leave slots small, and matrices go
/// to their tier whole: what that saves holds more slots, and what it costs comes off, down to
/// `ring_layers`.
std::int32_t weight_stream::affordable_slots() const {
  const std::int64_t least = options_.ring_layers;
  if (least == 1) return 1;
  const tier_bytes at = homes_->bytes();
  const std::int64_t meant = (at.device + at.host + at.disk) * options_.weights.device / 100;
  const std::int64_t room = meant - at.device + least * largest_whole_;
  return static_cast<std::int32_t>(std::max(least, room / weight_ring::bytes(*homes_, order_, 1)));
}

ring_stats weight_stream::stats() const {
  ring_stats all = ring_ ? ring_->stats() : ring_stats{};
  all.disk_bytes += rows_moved_.disk_bytes;
  all.host_bytes += rows_moved_.host_bytes;
  all.waited_seconds += rows_moved_.waited_seconds;
  all.moving_seconds = pool_->busy_seconds();
  return all;
}

void weight_stream::begin_pass(bool whole) {
  if (ring_) ring_->begin_pass(whole ? order_.size() : n_layer_units_);
}

result<nothing> weight_stream::acquire(std::int32_t unit) {
  if (unit < 0 || !travels(unit)) return nothing{};
  return ring_->acquire(unit);
}

void weight_stream::release(std::int32_t unit) {
  if (unit >= 0 && travels(unit)) ring_->release(unit);
}

} // namespace twill::models::offload
