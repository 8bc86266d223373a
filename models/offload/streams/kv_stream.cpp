#include "models/offload/streams/kv_stream.hpp"

#include <algorithm>
#include <chrono>
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
  return plain_bytes(kv) + (kv.four_bits ? kv.shape.n_blocks * kv_strides(kv).home : 0);
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
      "kv_stream: attention at home needs device memory that is the host's, and no 4 bits");
  TWILL_ASSERT(kv.partial_blocks_travel || gpu::device_memory_is_host(),
               "kv_stream: partial_blocks stay at home only where device memory is the host's");
  std::unique_ptr<kv_stream> made(new kv_stream(dev, kv));
  auto backing = kv_backing::create(kv, where);
  if (!backing.ok()) return backing.error();
  made->backing_ = std::move(backing).value();
  const std::int64_t bytes = device_bytes(kv);
  if (bytes > 0) {
    auto memory = dev.allocate(static_cast<std::size_t>(bytes), "KV on its transfer_direction",
                               gpu::filling::bit_by_bit);
    if (!memory.ok()) return from_gpu(memory.error());
    made->memory_ = std::move(memory).value();
    auto* at = static_cast<unsigned char*>(made->memory_.data());
    for (std::int32_t i = 0; i < kv.buffers; ++i) {
      auto b = std::make_unique<buffer>();
      b->plain = at;
      b->travelling = kv.four_bits ? at + plain_bytes(kv) : at;
      at += buffer_bytes(kv);
      made->buffers_.push_back(std::move(b));
    }
  }
  auto pool = io_pool::start(where.io_threads);
  if (!pool.ok()) return pool.error();
  made->pool_ = std::move(pool).value();
  return made;
}

kv_stream::buffer* kv_stream::find(std::int32_t layer, std::int32_t batch) {
  for (const auto& b : buffers_)
    if (b->now != buffer_state::free && b->layer == layer && b->batch == batch) return b.get();
  return nullptr;
}

unsigned char* kv_stream::partial_blocks_of(const buffer& b) const {
  return options_.partial_blocks_travel ? b.plain + segment_bytes()
                                        : backing_->partial_blocks(b.layer, b.batch);
}

/// Posts the copies of some blocks. With the last of them the buffer is ready; or free, if it does
/// not hold the segment as it is at home: rounded to 4 bits, or with a block that was a partial
/// block.
void kv_stream::move(buffer& b, const std::vector<block_range>& blocks,
                     transfer_direction direction) {
  const bool loads = direction == transfer_direction::to_device;
  const auto any = [&](bool block_range::*what) {
    return std::any_of(blocks.begin(), blocks.end(), [&](const block_range& r) { return r.*what; });
  };
  const bool filled = any(&block_range::filled); // so it is a store
  const block_location where_full = options_.four_bits
                                        ? block_location::anywhere
                                        : block_location::in_segment; // packed, all are there
  auto tasks =
      backing_->tasks_of(b.layer, spans_of(blocks, where_full, options_.sequences), direction);
  for (const auto& task : tasks)
    for (const kv_backing::extent& e : task)
      (loads ? stats_.loaded_bytes : stats_.stored_bytes) += e.bytes;
  const bool keeps = filled && !options_.four_bits;
  const bool travels = options_.partial_blocks_travel && (any(&block_range::open) || keeps);
  if (keeps)
    for (const block_range& r : blocks)
      stats_.stored_bytes += r.filled ? strides_.home : 0;
  if (travels || keeps) tasks.emplace_back();
  const buffer_state after =
      !loads && (options_.four_bits || filled) ? buffer_state::free : buffer_state::ready;
  b.now = tasks.empty() ? after : loads ? buffer_state::filling : buffer_state::storing;
  b.left = static_cast<std::int32_t>(tasks.size());
  const bool on_disk = backing_->tier_of(b.layer) == tier::disk;
  const lane where = on_disk ? (loads ? lane::disk_read : lane::disk_write)
                             : (loads ? lane::host_to_device : lane::device_to_host);
  for (auto& extents : tasks) {
    auto copy = [this, &b, direction, where, after, travels, keeps, blocks,
                 mine = std::move(extents)](io_worker& worker) {
      result<nothing> outcome = from_gpu(b.last_use.wait());
      const span_clock began(timeline_);
      for (const kv_backing::extent& e : mine)
        if (outcome.ok())
          outcome = backing_->copy(b.layer, b.batch, b.travelling, e, direction, worker);
      if (mine.empty() && travels && outcome.ok())
        outcome = backing_->copy_partial_blocks(b.layer, b.batch, partial_blocks_of(b), blocks,
                                                direction, worker);
      if (mine.empty() && keeps && outcome.ok())
        outcome = backing_->keep_filled(b.layer, b.batch, blocks);
      began.end(where, b.layer, b.batch);
      const std::lock_guard lock(mutex_);
      if (!outcome.ok() && !why_) why_ = outcome.error();
      if (--b.left > 0) return;
      b.now = after;
      changed_.notify_all();
    };
    // Stores are few and make buffers free; behind the loads they would keep the disk idle.
    loads ? pool_->post(std::move(copy)) : pool_->post_first(std::move(copy));
  }
}

void kv_stream::fill(buffer& b, std::int32_t layer, std::int32_t batch,
                     const std::vector<block_range>& used) {
  b.layer = layer;
  b.batch = batch;
  b.awaited = true;
  move(b, used, transfer_direction::to_device);
}

void kv_stream::load_ahead(std::int32_t layer, std::int32_t batch,
                           const std::vector<block_range>& used) {
  if (backing_->used_on_host(layer)) return;
  const std::lock_guard lock(mutex_);
  if (buffer* there = find(layer, batch); there != nullptr) {
    there->awaited = true;
    return;
  }
  if (buffer* b = idle_buffer(buffers_, false); b != nullptr) fill(*b, layer, batch, used);
}

result<gpu::kv_layer> kv_stream::acquire(std::int32_t layer, std::int32_t batch,
                                         const std::vector<block_range>& used) {
  if (backing_->used_on_host(layer))
    return layer_at(backing_->host_segment(layer, batch), backing_->partial_blocks(layer, batch));
  std::unique_lock lock(mutex_);
  const auto began = std::chrono::steady_clock::now();
  buffer* b = nullptr;
  changed_.wait(lock, [&] {
    if (why_) return true;
    b = find(layer, batch);
    if (b == nullptr) {
      b = idle_buffer(buffers_, true);
      if (b != nullptr) fill(*b, layer, batch, used);
    }
    return b != nullptr && b->now == buffer_state::ready;
  });
  stats_.waited_seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (why_) return *why_;
  b->now = buffer_state::in_use;
  b->awaited = false;
  lock.unlock();
  const gpu::kv_layer there = layer_at(b->plain, partial_blocks_of(*b));
  if (options_.four_bits)
    for (const block_span& s : spans_of(used, block_location::in_segment, options_.sequences))
      gpu::kv4_unpack(dev_, there, s.first, s.count, b->travelling, strides_.home);
  return there;
}

/// Full blocks to 4 bits in their place in the segment, wherever they lie.
void kv_stream::pack(const buffer& b, const std::vector<block_range>& written) {
  const gpu::kv_layer segment = record_.layer_at(options_.shape, b.plain, strides_.plain);
  for (const block_span& s : spans_of(written, block_location::in_segment, options_.sequences))
    gpu::kv4_pack(dev_, segment, s.first, s.count, b.travelling, strides_.home);
  const gpu::kv_layer partial_blocks =
      record_.layer_at(options_.shape, partial_blocks_of(b), strides_.plain);
  for (const block_range& r : written)
    if (r.filled)
      gpu::kv4_pack(dev_, partial_blocks, r.sequence, 1,
                    b.travelling + std::int64_t{r.first} * options_.sequences * strides_.home,
                    strides_.home);
}

/// At home in place the device is the host, and done.
void kv_stream::release(std::int32_t layer, std::int32_t batch,
                        const std::vector<block_range>& written) {
  if (backing_->used_on_host(layer)) {
    const auto kept = backing_->keep_filled(layer, batch, written);
    TWILL_ASSERT(kept.ok(), "release: a copy within host memory failed");
    return;
  }
  const std::lock_guard lock(mutex_);
  buffer* b = find(layer, batch);
  TWILL_ASSERT(b != nullptr && b->now == buffer_state::in_use, "release: the KV is not in use");
  if (options_.four_bits) pack(*b, written);
  b->last_use.record();
  move(*b, written, transfer_direction::to_backing);
}

void kv_stream::forget(std::int32_t batch) {
  const std::lock_guard lock(mutex_);
  for (const auto& b : buffers_)
    if (b->now != buffer_state::free && b->batch == batch) b->awaited = false;
}

/// Partial blocks follow the segment, or are elsewhere.
gpu::kv_layer kv_stream::layer_at(unsigned char* segment, unsigned char* partial_blocks) const {
  gpu::kv_layer layer = record_.layer_at(options_.shape, segment, strides_.plain);
  const std::int64_t apart = partial_blocks - (segment + segment_bytes());
  layer.apart = apart / static_cast<std::int64_t>(gpu::size_of(layer.type));
  layer.scale_apart = apart / static_cast<std::int64_t>(sizeof(float));
  return layer;
}

transfer_stats kv_stream::stats() const {
  const std::lock_guard lock(mutex_);
  transfer_stats all = stats_;
  all.moving_seconds = pool_->busy_seconds();
  return all;
}

} // namespace twill::models::offload
