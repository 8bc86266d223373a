#include "models/offload/streams/kv_stream.hpp"

#include <algorithm>
#include <utility>

#include "config/base/assert.hpp"
#include "gpu/attention/kv4.hpp"
#include "models/decoder/gpu_error.hpp"

namespace twill::models::offload {

namespace {

std::int64_t plain_bytes(const kv_stream_options& kv) {
  return (kv.shape.n_blocks + (kv.partial_blocks_travel ? kv.sequences : 0)) * kv_strides(kv).plain;
}

std::int64_t buffer_bytes(const kv_stream_options& kv) {
  return plain_bytes(kv) + (kv.four_bits ? kv.shape.n_blocks * kv_strides(kv).stored : 0);
}

} // namespace

std::vector<bool> kv_stream::staged_layers(const kv_stream_options& kv) {
  std::vector<bool> staged;
  for (const tier t : kv_backing::of_layers(kv))
    staged.push_back(t != tier::device);
  return staged;
}

std::int64_t kv_stream::device_bytes(const kv_stream_options& kv) {
  const auto backing = kv_backing::of_layers(kv);
  const bool travels = std::any_of(backing.begin(), backing.end(), [&](tier t) {
    return t == tier::disk || (t == tier::host && !kv.attend_on_host);
  });
  return travels ? kv.buffers * buffer_bytes(kv) : 0;
}

kv_stream::kv_stream(gpu::device& dev, const kv_stream_options& kv)
    : dev_(dev), options_(kv), record_(kv.shape), strides_(kv) {}

result<std::unique_ptr<kv_stream>> kv_stream::create(gpu::device& dev, const kv_stream_options& kv,
                                                     const offload_options& where) {
  TWILL_ASSERT(
      !kv.attend_on_host || (gpu::device_memory_is_host() && !kv.four_bits),
      "kv_stream: attention on the host needs device memory that is host memory, and no 4 bits");
  TWILL_ASSERT(
      kv.partial_blocks_travel || gpu::device_memory_is_host(),
      "kv_stream: partial blocks stay in host memory only where device memory is the host's");
  std::unique_ptr<kv_stream> stream(new kv_stream(dev, kv));
  auto backing = kv_backing::create(kv, where);
  if (!backing.ok()) return backing.error();
  stream->backing_ = std::move(backing).value();
  const std::int64_t bytes = device_bytes(kv);
  if (bytes > 0) {
    auto memory = dev.allocate(static_cast<std::size_t>(bytes), "KV on its way",
                               gpu::page_hint::filled_gradually);
    if (!memory.ok()) return from_gpu(memory.error());
    stream->memory_ = std::move(memory).value();
    stream->buffers_.create(static_cast<unsigned char*>(stream->memory_.data()), kv.buffers,
                            buffer_bytes(kv));
  }
  auto pool = io_pool::start(where.io_threads);
  if (!pool.ok()) return pool.error();
  stream->pool_ = std::move(pool).value();
  return stream;
}

unsigned char* kv_stream::travelling(const staging_buffer& b) const {
  return options_.four_bits ? b.memory + plain_bytes(options_) : b.memory;
}

unsigned char* kv_stream::partial_blocks_of(const staging_buffer& b) const {
  return options_.partial_blocks_travel ? b.memory + segment_bytes()
                                        : backing_->partial_blocks(layer_in(b), batch_in(b));
}

/// Posts copies of `blocks` between the device buffer `b` and the stored KV. A load leaves the
/// buffer ready to be used. A store leaves it ready too if the buffer still equals what is stored;
/// otherwise the buffer becomes free, and the KV must be loaded again. The two differ if the stored
/// blocks are rounded to 4 bits, or if a partial block has become full, because then only the
/// stored KV has that block in its place among the full blocks.
void kv_stream::move(staging_buffer& b, const std::vector<block_range>& blocks,
                     transfer_direction direction) {
  const std::int32_t layer = layer_in(b), batch = batch_in(b);
  const bool loads = direction == transfer_direction::to_device;
  const auto any = [&](bool block_range::*what) {
    return std::any_of(blocks.begin(), blocks.end(), [&](const block_range& r) { return r.*what; });
  };
  const bool filled = any(&block_range::filled); // only stores have filled blocks
  const block_location where_full =
      options_.four_bits ? block_location::anywhere
                         : block_location::in_segment; // packed blocks are all in the segment
  auto tasks =
      backing_->tasks_of(layer, spans_of(blocks, where_full, options_.sequences), direction);
  for (const auto& task : tasks)
    for (const kv_backing::extent& e : task)
      (loads ? stats_.loaded_bytes : stats_.stored_bytes) += e.bytes;
  const bool keeps = filled && !options_.four_bits;
  const bool travels = options_.partial_blocks_travel && (any(&block_range::open) || keeps);
  if (keeps)
    for (const block_range& r : blocks)
      stats_.stored_bytes += r.filled ? strides_.stored : 0;
  if (travels || keeps) tasks.emplace_back();
  const buffer_state after =
      !loads && (options_.four_bits || filled) ? buffer_state::free : buffer_state::ready;
  buffers_.begin_copies(b, loads ? buffer_state::filling : buffer_state::storing,
                        static_cast<std::int32_t>(tasks.size()), after);
  const bool on_disk = backing_->tier_of(layer) == tier::disk;
  const lane where = on_disk ? (loads ? lane::disk_read : lane::disk_write)
                             : (loads ? lane::host_to_device : lane::device_to_host);
  for (auto& extents : tasks) {
    auto copy = [this, &b, layer, batch, direction, where, travels, keeps, blocks,
                 mine = std::move(extents)](io_worker& worker) {
      result<nothing> outcome = from_gpu(b.last_use.wait());
      const span_clock began(timeline_);
      for (const kv_backing::extent& e : mine)
        if (outcome.ok())
          outcome = backing_->copy(layer, batch, travelling(b), e, direction, worker);
      if (mine.empty() && travels && outcome.ok())
        outcome = backing_->copy_partial_blocks(layer, batch, partial_blocks_of(b), blocks,
                                                direction, worker);
      if (mine.empty() && keeps && outcome.ok())
        outcome = backing_->keep_filled(layer, batch, blocks);
      began.end(where, layer, batch);
      const auto lock = buffers_.lock();
      buffers_.end_copy(b, outcome);
    };
    // Stores go first: they are few and make buffers idle for loads that wait.
    loads ? pool_->post(std::move(copy)) : pool_->post_first(std::move(copy));
  }
}

void kv_stream::fill(staging_buffer& b, std::int64_t content,
                     const std::vector<block_range>& used) {
  buffers_.assign(b, content);
  b.awaited = true;
  move(b, used, transfer_direction::to_device);
}

void kv_stream::load_ahead(std::int32_t layer, std::int32_t batch,
                           const std::vector<block_range>& used) {
  if (backing_->used_on_host(layer)) return;
  const auto lock = buffers_.lock();
  const std::int64_t content = content_of(layer, batch);
  if (staging_buffer* held = buffers_.find(content); held != nullptr) {
    held->awaited = true;
    return;
  }
  if (staging_buffer* b = buffers_.idle(false); b != nullptr) fill(*b, content, used);
}

result<gpu::kv_layer> kv_stream::acquire(std::int32_t layer, std::int32_t batch,
                                         const std::vector<block_range>& used) {
  if (backing_->used_on_host(layer))
    return layer_at(backing_->host_segment(layer, batch), backing_->partial_blocks(layer, batch));
  auto lock = buffers_.lock();
  const std::int64_t content = content_of(layer, batch);
  const auto acquired =
      buffers_.acquire(lock, content, [&](staging_buffer& b) { fill(b, content, used); });
  if (!acquired.ok()) return acquired.error();
  const staging_buffer* b = acquired.value();
  lock.unlock();
  const gpu::kv_layer kv = layer_at(b->memory, partial_blocks_of(*b));
  if (options_.four_bits)
    for (const block_span& s : spans_of(used, block_location::in_segment, options_.sequences))
      gpu::kv4_unpack(dev_, kv, s.first, s.count, travelling(*b), strides_.stored);
  return kv;
}

/// Packs blocks that have just become full to 4 bits. The buffer has a plain and a packed copy of
/// the segment (the full KV blocks of one layer and micro-batch). The blocks are read from the
/// plain copy or, if they were partial before, from the partial blocks, and are written to their
/// places in the packed copy.
void kv_stream::pack(const staging_buffer& b, const std::vector<block_range>& written) {
  const gpu::kv_layer segment = record_.layer_at(options_.shape, b.memory, strides_.plain);
  for (const block_span& s : spans_of(written, block_location::in_segment, options_.sequences))
    gpu::kv4_pack(dev_, segment, s.first, s.count, travelling(b), strides_.stored);
  const gpu::kv_layer partial_blocks =
      record_.layer_at(options_.shape, partial_blocks_of(b), strides_.plain);
  for (const block_range& r : written)
    if (r.filled)
      gpu::kv4_pack(dev_, partial_blocks, r.sequence, 1,
                    travelling(b) + std::int64_t{r.first} * options_.sequences * strides_.stored,
                    strides_.stored);
}

/// Where attention uses KV in host memory in place, the device is the host's processor and has
/// already finished the task. Blocks that the task filled are then copied at once.
void kv_stream::release(std::int32_t layer, std::int32_t batch,
                        const std::vector<block_range>& written) {
  if (backing_->used_on_host(layer)) {
    const auto kept = backing_->keep_filled(layer, batch, written);
    TWILL_ASSERT(kept.ok(), "release: a copy within host memory failed");
    return;
  }
  const auto lock = buffers_.lock();
  staging_buffer* b = buffers_.find(content_of(layer, batch));
  TWILL_ASSERT(b != nullptr && b->state == buffer_state::in_use, "release: the KV is not in use");
  if (options_.four_bits) pack(*b, written);
  b->last_use.record(dev_);
  move(*b, written, transfer_direction::to_backing);
}

void kv_stream::forget(std::int32_t batch) {
  const auto lock = buffers_.lock();
  for (const auto& b : buffers_.all())
    if (b->state != buffer_state::free && batch_in(*b) == batch) b->awaited = false;
}

/// The partial blocks lie directly behind the segment or elsewhere in memory.
gpu::kv_layer kv_stream::layer_at(unsigned char* segment, unsigned char* partial_blocks) const {
  gpu::kv_layer layer = record_.layer_at(options_.shape, segment, strides_.plain);
  const std::int64_t apart = partial_blocks - (segment + segment_bytes());
  layer.apart = apart / static_cast<std::int64_t>(gpu::size_of(layer.type));
  layer.scale_apart = apart / static_cast<std::int64_t>(sizeof(float));
  return layer;
}

transfer_stats kv_stream::stats() const {
  const auto lock = buffers_.lock();
  transfer_stats all = stats_;
  all.waited_seconds = buffers_.waited_seconds();
  all.moving_seconds = pool_->busy_seconds();
  return all;
}

} // namespace twill::models::offload
