#include "models/offload/kv_stream.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "config/base/units.hpp"
#include "gpu/host/machine.hpp"
#include "models/detail/gpu_error.hpp"
#include "models/offload/tiers.hpp"

namespace twill::models::offload {
namespace {

/// Bytes of one block of keys, values, and with i8 their scales.
std::vector<std::int64_t> part_bytes(const gpu::kv_layer& shape) {
  const std::int64_t tokens = std::int64_t{shape.n_kv_heads} * shape.block_tokens;
  const std::int64_t values =
      tokens * shape.head_dim * static_cast<std::int64_t>(gpu::size_of(shape.type));
  if (shape.type != gpu::dtype::i8) return {values, values};
  const std::int64_t scales = tokens * std::int64_t{sizeof(float)};
  return {values, values, scales, scales};
}

std::int64_t image_of(const kv_stream_options& kv) {
  std::int64_t bytes = 0;
  for (const std::int64_t block : part_bytes(kv.shape))
    bytes += store_aligned(block * kv.shape.n_blocks);
  return bytes;
}

std::vector<tier> homes_of(const kv_stream_options& kv) {
  return assign_tiers(std::vector<std::int64_t>(static_cast<std::size_t>(kv.n_layers), 1), kv.kv);
}

} // namespace

std::vector<bool> kv_stream::staged_layers(const kv_stream_options& kv) {
  std::vector<bool> staged;
  for (const tier t : homes_of(kv))
    staged.push_back(t != tier::device);
  return staged;
}

std::int64_t kv_stream::buffer_bytes(const kv_stream_options& kv) {
  return kv.buffers * image_of(kv);
}

result<std::unique_ptr<kv_stream>> kv_stream::create(gpu::device& dev, const kv_stream_options& kv,
                                                     const offload_options& where) {
  std::unique_ptr<kv_stream> made(new kv_stream(kv, where));
  made->homes_ = homes_of(kv);
  made->part_block_bytes_ = part_bytes(kv.shape);
  for (const std::int64_t block : made->part_block_bytes_) {
    made->part_at_.push_back(made->image_bytes_);
    made->image_bytes_ += store_aligned(block * kv.shape.n_blocks);
  }
  std::int32_t on_host = 0, on_disk = 0;
  for (const tier t : made->homes_)
    made->number_.push_back(t == tier::host ? on_host++ : t == tier::disk ? on_disk++ : 0);
  const std::int64_t host = on_host * kv.n_batches * made->image_bytes_;
  const std::int64_t most = where.host_bytes > 0 ? where.host_bytes : gpu::host::available_bytes();
  if (host > most)
    return failure{errc::out_of_memory, "the host tier must hold " + format_bytes(host) +
                                            " of KV, but may take " + format_bytes(most)};
  if (on_host > 0) {
    auto memory = gpu::host_buffer::allocate(static_cast<std::size_t>(host), "KV on the host");
    if (!memory.ok()) return from_gpu(memory.error());
    made->host_ = std::move(memory).value();
  }
  if (on_disk > 0) {
    auto store =
        where.open_store ? where.open_store() : open_file_store(where.dir, where.direct_reads);
    if (!store.ok()) return store.error();
    made->store_ = std::move(store).value();
  }
  for (std::int32_t i = 0; i < kv.buffers; ++i) {
    auto b = std::make_unique<buffer>();
    auto memory = dev.allocate(static_cast<std::size_t>(made->image_bytes_), "KV on its way");
    if (!memory.ok()) return from_gpu(memory.error());
    b->memory = std::move(memory).value();
    made->buffers_.push_back(std::move(b));
  }
  auto pool = io_pool::start(where.io_threads);
  if (!pool.ok()) return pool.error();
  made->pool_ = std::move(pool).value();
  return made;
}

kv_stream::buffer* kv_stream::find(std::int32_t layer, std::int32_t batch) {
  for (const auto& b : buffers_)
    if (b->now != state::free && b->layer == layer && b->batch == batch) return b.get();
  return nullptr;
}

/// A free one, else one whose image is at home as well.
kv_stream::buffer* kv_stream::idle_buffer() {
  for (const state wanted : {state::free, state::ready})
    for (const auto& b : buffers_)
      if (b->now == wanted) return b.get();
  return nullptr;
}

unsigned char* kv_stream::host_home(const buffer& b) const {
  const std::int64_t image =
      std::int64_t{number_[static_cast<std::size_t>(b.layer)]} * options_.n_batches + b.batch;
  return host_.data() + image * image_bytes_;
}

std::int64_t kv_stream::disk_home(const buffer& b) const {
  const std::int64_t image =
      std::int64_t{number_[static_cast<std::size_t>(b.layer)]} * options_.n_batches + b.batch;
  return image * image_bytes_;
}

/// Where the blocks lie in an image, neighbours joined; for a disk in whole pages. What a page
/// holds beside them is either loaded too or read by nobody.
std::vector<kv_stream::extent> kv_stream::extents(const std::vector<block_range>& blocks,
                                                  bool on_disk) const {
  std::vector<extent> all;
  for (std::size_t part = 0; part < part_at_.size(); ++part)
    for (const block_range& r : blocks) {
      std::int64_t begin = part_at_[part] + r.first * part_block_bytes_[part];
      std::int64_t end = begin + r.count * part_block_bytes_[part];
      if (on_disk) {
        begin = begin / store_alignment * store_alignment;
        end = store_aligned(end);
      }
      if (!all.empty() && begin <= all.back().offset + all.back().bytes) {
        begin = all.back().offset;
        end = std::max(end, begin + all.back().bytes);
        all.pop_back();
      }
      for (; begin < end; begin += transfer_bytes)
        all.push_back({begin, std::min(transfer_bytes, end - begin)});
    }
  return all;
}

result<nothing> kv_stream::copy(buffer& b, const extent& e, bool to_device, io_worker& worker) {
  auto* device = static_cast<unsigned char*>(b.memory.data()) + e.offset;
  const auto bytes = static_cast<std::size_t>(e.bytes);
  if (homes_[static_cast<std::size_t>(b.layer)] == tier::host) {
    unsigned char* host = host_home(b) + e.offset;
    if (to_device)
      worker.copies.to_device(device, host, bytes);
    else
      worker.copies.to_host(host, device, bytes);
    link_.pass(e.bytes);
    return nothing{};
  }
  const std::int64_t at = disk_home(b) + e.offset;
  const bool straight = gpu::device_memory_is_host();
  unsigned char* through = straight ? device : worker.bounce.data();
  if (to_device) {
    if (auto got = store_->read(at, through, e.bytes); !got.ok()) return got;
    if (!straight) worker.copies.to_device(device, through, bytes);
    link_.pass(e.bytes);
    return nothing{};
  }
  if (!straight) worker.copies.to_host(through, device, bytes);
  link_.pass(e.bytes);
  return store_->write(at, through, e.bytes);
}

/// Posts the copies of some blocks; with the last of them the buffer is ready.
void kv_stream::move(buffer& b, const std::vector<block_range>& blocks, bool to_device) {
  const bool on_disk = homes_[static_cast<std::size_t>(b.layer)] == tier::disk;
  const std::vector<extent> all = extents(blocks, on_disk);
  // Many small copies are one task: each task costs a lock and perhaps a wake-up.
  std::vector<std::vector<extent>> tasks;
  std::int64_t bytes = 0, in_task = transfer_bytes;
  for (const extent& e : all) {
    if (in_task + e.bytes > transfer_bytes || on_disk) {
      tasks.emplace_back();
      in_task = 0;
    }
    tasks.back().push_back(e);
    in_task += e.bytes;
    bytes += e.bytes;
  }
  (to_device ? stats_.loaded_bytes : stats_.stored_bytes) += bytes;
  b.now = tasks.empty() ? state::ready : to_device ? state::filling : state::storing;
  b.left = static_cast<std::int32_t>(tasks.size());
  for (auto& extents_of_task : tasks)
    pool_->post([this, &b, to_device, on_disk, mine = std::move(extents_of_task)](io_worker& w) {
      b.last_use.wait();
      const span_clock began(timeline_);
      result<nothing> outcome = nothing{};
      for (const extent& e : mine)
        if (outcome.ok()) outcome = copy(b, e, to_device, w);
      began.end(on_disk     ? (to_device ? lane::disk_read : lane::disk_write)
                : to_device ? lane::host_to_device
                            : lane::device_to_host,
                b.layer, b.batch);
      const std::lock_guard lock(mutex_);
      if (!outcome.ok() && !why_) why_ = outcome.error();
      if (--b.left > 0) return;
      b.now = state::ready;
      changed_.notify_all();
    });
}

void kv_stream::load_ahead(std::int32_t layer, std::int32_t batch,
                           const std::vector<block_range>& used) {
  const std::lock_guard lock(mutex_);
  if (find(layer, batch) != nullptr) return;
  buffer* b = idle_buffer();
  if (b == nullptr) return;
  b->layer = layer;
  b->batch = batch;
  move(*b, used, true);
}

result<gpu::kv_layer> kv_stream::acquire(std::int32_t layer, std::int32_t batch,
                                         const std::vector<block_range>& used) {
  std::unique_lock lock(mutex_);
  const auto began = std::chrono::steady_clock::now();
  buffer* b = nullptr;
  changed_.wait(lock, [&] {
    if (why_) return true;
    b = find(layer, batch);
    if (b == nullptr) {
      buffer* idle = idle_buffer();
      if (idle == nullptr) return false;
      idle->layer = layer;
      idle->batch = batch;
      move(*idle, used, true);
      b = idle;
    }
    return b->now == state::ready;
  });
  stats_.waited_seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (why_) return *why_;
  b->now = state::in_use;
  return layer_at(*b);
}

void kv_stream::release(std::int32_t layer, std::int32_t batch,
                        const std::vector<block_range>& written) {
  const std::lock_guard lock(mutex_);
  buffer* b = find(layer, batch);
  TWILL_ASSERT(b != nullptr && b->now == state::in_use, "release: the KV is not in use");
  b->last_use.record();
  move(*b, written, false);
}

gpu::kv_layer kv_stream::layer_at(const buffer& b) const {
  gpu::kv_layer layer = options_.shape;
  auto* image = static_cast<unsigned char*>(b.memory.data());
  layer.keys = image + part_at_[0];
  layer.values = image + part_at_[1];
  if (part_at_.size() > 2) {
    layer.key_scales = reinterpret_cast<float*>(image + part_at_[2]);
    layer.value_scales = reinterpret_cast<float*>(image + part_at_[3]);
  }
  return layer;
}

kv_stats kv_stream::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

} // namespace twill::models::offload
