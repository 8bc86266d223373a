#include "models/offload/streams/weight_stream.hpp"

#include <algorithm>
#include <utility>

namespace twill::models::offload {

result<std::unique_ptr<weight_stream>> weight_stream::open(gpu::device& dev,
                                                           const offload_options& options) {
  std::unique_ptr<weight_stream> stream(new weight_stream(dev, options));
  stream->resources_ = options.resources ? options.resources : std::make_shared<tier_resources>();
  auto pool = io_pool::start(options.io_threads, stream->resources_->threads());
  if (!pool.ok()) return pool.error();
  stream->pool_ = std::move(pool).value();
  if (options.weights.device + options.weights.host < 100) {
    auto store = stream->resources_->open_weight_store(options);
    if (!store.ok()) return store.error();
    stream->store_ = std::move(store).value();
  }
  stream->placement_ = std::make_unique<weight_placement>(
      dev, stream->store_.get(), stream->resources_->host(), options, stream->link_);
  return stream;
}

weight_stream::~weight_stream() {
  if (store_)
    resources_->close_weight_store(); // the file is deleted when its last user is
                                      // destroyed
}

result<std::int32_t> weight_stream::add_group(const std::vector<gpu::packed_matrix*>& matrices) {
  std::vector<weight_segment> segments;
  std::vector<std::int64_t> sizes;
  for (gpu::packed_matrix* m : matrices) {
    segments.push_back({m, 0, m});
    sizes.push_back(m->layout().bytes(m->row_panels()));
  }
  auto group = placement_->add(segments, layout_.add_group(sizes));
  if (!group.ok()) return group;
  for (gpu::packed_matrix* m : matrices)
    m->drop_host_bytes();
  if (!travels(group.value())) return -1;
  order_.push_back(group.value());
  n_layer_groups_ = order_.size();
  return group;
}

result<nothing> weight_stream::add_table(const gpu::packed_matrix& table, bool in_every_pass,
                                         std::vector<table_part>& parts) {
  const weight_layout::table_cut cut =
      layout_.add_table(table.layout(), table.row_panels(), in_every_pass);
  for (std::size_t i = 0; i < cut.tiers.size(); ++i) {
    table_part part;
    part.first_row = 16 * cut.part_panels * static_cast<std::int64_t>(i);
    part.matrix = table.like(std::min(table.rows() - part.first_row, 16 * cut.part_panels));
    parts.push_back(std::move(part));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto group =
        placement_->add({{&table, parts[i].first_row / 16, &parts[i].matrix}}, {cut.tiers[i]});
    if (!group.ok()) return group.error();
    parts[i].group = group.value();
    if (in_every_pass && travels(group.value())) order_.push_back(group.value());
  }
  return nothing{};
}

result<std::unique_ptr<embedding_cache>>
weight_stream::rows_of(const gpu::packed_matrix& table, const std::vector<table_part>& parts,
                       std::int64_t most_rows) {
  return embedding_cache::create(dev_, *placement_, *pool_, table, parts, most_rows, rows_moved_);
}

result<nothing> weight_stream::start() {
  if (order_.empty()) return nothing{};
  auto ring = weight_ring::create(dev_, *placement_, *pool_, order_, layout_.buffers());
  if (!ring.ok()) return ring.error();
  ring_ = std::move(ring).value();
  return nothing{};
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
  if (ring_) ring_->begin_pass(whole ? order_.size() : n_layer_groups_);
}

result<nothing> weight_stream::acquire(std::int32_t group) {
  if (group < 0 || !travels(group)) return nothing{};
  return ring_->acquire(group);
}

void weight_stream::release(std::int32_t group) {
  if (group >= 0 && travels(group)) ring_->release(group);
}

} // namespace twill::models::offload
