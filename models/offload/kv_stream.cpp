#include "models/offload/kv_stream.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "config/base/assert.hpp"
#include "gpu/ops/kv4.hpp"
#include "models/detail/gpu_error.hpp"

namespace twill::models::offload {

std::vector<bool> kv_stream::staged_layers(const kv_stream_options& kv) {
  std::vector<bool> staged;
  for (const tier t : kv_homes::of_layers(kv))
    staged.push_back(t != tier::device);
  return staged;
}

std::int64_t kv_stream::buffer_bytes(const kv_stream_options& kv) {
  const auto homes = kv_homes::of_layers(kv);
  const bool travels = std::any_of(homes.begin(), homes.end(), [&](tier t) {
    return t == tier::disk || (t == tier::host && !kv.attend_at_home);
  });
  const std::int64_t packed = kv.four_bits ? kv_parts::at_home(kv).bytes : 0;
  return travels ? kv.buffers * (kv_parts::on_device(kv.shape).bytes + packed) : 0;
}

kv_stream::kv_stream(gpu::device& dev, const kv_stream_options& kv)
    : dev_(dev), options_(kv), parts_(kv_parts::on_device(kv.shape)),
      packed_block_(kv.four_bits ? kv_parts::at_home(kv).block_bytes[0] : 0) {}

result<std::unique_ptr<kv_stream>> kv_stream::create(gpu::device& dev, const kv_stream_options& kv,
                                                     const offload_options& where) {
  TWILL_ASSERT(
      !kv.attend_at_home || (gpu::device_memory_is_host() && !kv.four_bits),
      "kv_stream: attention at home needs device memory that is the host's, and no 4 bits");
  std::unique_ptr<kv_stream> made(new kv_stream(dev, kv));
  auto homes = kv_homes::create(kv, where);
  if (!homes.ok()) return homes.error();
  made->homes_ = std::move(homes).value();
  const std::int64_t bytes = buffer_bytes(kv);
  if (bytes > 0) {
    auto memory =
        dev.allocate(static_cast<std::size_t>(bytes), "KV on its way", gpu::filling::bit_by_bit);
    if (!memory.ok()) return from_gpu(memory.error());
    made->memory_ = std::move(memory).value();
    auto* at = static_cast<unsigned char*>(made->memory_.data());
    for (std::int32_t i = 0; i < kv.buffers; ++i) {
      auto b = std::make_unique<buffer>();
      b->image.plain = std::exchange(at, at + made->parts_.bytes);
      if (kv.four_bits) b->image.packed = std::exchange(at, at + kv_parts::at_home(kv).bytes);
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

/// Posts the copies of some blocks. With the last of them the buffer is ready; once its 4 bits are
/// at home it is free, since what it holds was not rounded.
void kv_stream::move(buffer& b, const std::vector<block_range>& blocks, way direction) {
  const bool loads = direction == way::to_device;
  const buffer_state after =
      !loads && options_.four_bits ? buffer_state::free : buffer_state::ready;
  auto tasks = homes_->tasks_of(b.layer, homes_->closed(b.layer, blocks), direction);
  if (tasks.empty() && !blocks.empty()) tasks.emplace_back(); // open blocks alone
  for (const auto& task : tasks)
    for (const kv_homes::extent& e : task)
      (loads ? stats_.loaded_bytes : stats_.stored_bytes) += e.bytes;
  b.now = tasks.empty() ? after : loads ? buffer_state::filling : buffer_state::storing;
  b.left = static_cast<std::int32_t>(tasks.size());
  const bool on_disk = homes_->home_of(b.layer) == tier::disk;
  const lane where = on_disk ? (loads ? lane::disk_read : lane::disk_write)
                             : (loads ? lane::host_to_device : lane::device_to_host);
  for (auto& extents : tasks) {
    auto copy = [this, &b, direction, where, after, blocks,
                 mine = std::move(extents)](io_worker& worker) {
      result<nothing> outcome = from_gpu(b.last_use.wait());
      const span_clock began(timeline_);
      for (const kv_homes::extent& e : mine)
        if (outcome.ok()) outcome = homes_->copy(b.layer, b.batch, b.image, e, direction, worker);
      began.end(where, b.layer, b.batch);
      std::unique_lock lock(mutex_);
      if (!outcome.ok() && !why_) why_ = outcome.error();
      if (--b.left > 0) return;
      lock.unlock();
      // Now: a page that was read from the disk may have covered them.
      outcome = homes_->copy_open(b.layer, b.batch, b.image, blocks, direction, worker);
      lock.lock();
      if (!outcome.ok() && !why_) why_ = outcome.error();
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
  move(b, used, way::to_device);
}

void kv_stream::load_ahead(std::int32_t layer, std::int32_t batch,
                           const std::vector<block_range>& used) {
  if (homes_->in_place(layer)) return;
  const std::lock_guard lock(mutex_);
  if (buffer* there = find(layer, batch); there != nullptr) {
    there->awaited = true;
    return;
  }
  if (buffer* b = idle_buffer(buffers_, false); b != nullptr) fill(*b, layer, batch, used);
}

result<gpu::kv_layer> kv_stream::acquire(std::int32_t layer, std::int32_t batch,
                                         const std::vector<block_range>& used) {
  if (homes_->in_place(layer)) return layer_at(homes_->host_image(layer, batch));
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
  const gpu::kv_layer there = layer_at(b->image.plain);
  if (options_.four_bits)
    for (const block_span& s : homes_->closed(layer, used))
      gpu::kv4_unpack(dev_, there, s.first, s.count, b->image.packed, packed_block_);
  return there;
}

void kv_stream::release(std::int32_t layer, std::int32_t batch,
                        const std::vector<block_range>& written) {
  if (homes_->in_place(layer)) return;
  const std::lock_guard lock(mutex_);
  buffer* b = find(layer, batch);
  TWILL_ASSERT(b != nullptr && b->now == buffer_state::in_use, "release: the KV is not in use");
  if (options_.four_bits)
    for (const block_span& s : homes_->closed(layer, written))
      gpu::kv4_pack(dev_, layer_at(b->image.plain), s.first, s.count, b->image.packed,
                    packed_block_);
  b->last_use.record();
  move(*b, written, way::to_home);
}

void kv_stream::forget(std::int32_t batch) {
  const std::lock_guard lock(mutex_);
  for (const auto& b : buffers_)
    if (b->now != buffer_state::free && b->batch == batch) b->awaited = false;
}

gpu::kv_layer kv_stream::layer_at(unsigned char* image) const {
  gpu::kv_layer layer = options_.shape;
  layer.keys = image + parts_.at[0];
  layer.values = image + parts_.at[1];
  if (parts_.at.size() > 2) {
    layer.key_scales = reinterpret_cast<float*>(image + parts_.at[2]);
    layer.value_scales = reinterpret_cast<float*>(image + parts_.at[3]);
  }
  return layer;
}

transfer_stats kv_stream::stats() const {
  const std::lock_guard lock(mutex_);
  transfer_stats all = stats_;
  all.moving_seconds = pool_->busy_seconds();
  return all;
}

} // namespace twill::models::offload
