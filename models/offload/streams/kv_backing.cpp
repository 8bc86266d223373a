#include "models/offload/streams/kv_backing.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "config/base/units.hpp"
#include "gpu/attention/kv4.hpp"
#include "gpu/machine.hpp"
#include "models/decoder/gpu_error.hpp"
#include "models/offload/tiers.hpp"

namespace twill::models::offload {

std::vector<block_span> spans_of(const std::vector<block_range>& blocks, block_location where,
                                 std::int32_t sequences) {
  std::vector<std::int32_t> numbers;
  for (const block_range& r : blocks) {
    if (where != block_location::anywhere &&
        r.filled != (where == block_location::in_partial_blocks))
      continue;
    for (std::int32_t i = r.first; i < r.first + r.count; ++i)
      numbers.push_back(i * sequences + r.sequence);
  }
  std::sort(numbers.begin(), numbers.end());
  std::vector<block_span> spans;
  for (const std::int32_t n : numbers) {
    if (spans.empty() || spans.back().first + spans.back().count != n) spans.push_back({n, 0});
    ++spans.back().count;
  }
  return spans;
}

kv_strides::kv_strides(const kv_stream_options& kv)
    : plain(store_aligned(kv_block_layout(kv.shape).bytes())),
      stored(kv.four_bits ? store_aligned(gpu::kv4_block_bytes(kv.shape)) : plain) {}

std::vector<tier> kv_backing::of_layers(const kv_stream_options& kv) {
  return spread_tiers(kv.n_layers, kv.kv);
}

kv_backing::kv_backing(const kv_stream_options& kv, const offload_options& where)
    : options_(kv), link_(where.link_bytes_per_second), tiers_(of_layers(kv)), strides_(kv),
      segment_bytes_(kv.shape.n_blocks * strides_.stored) {
  for (const tier t : tiers_) {
    std::int64_t& n = t == tier::host ? on_host_ : on_disk_;
    number_.push_back(static_cast<std::int32_t>(n));
    n += t == tier::device ? 0 : 1;
  }
}

result<std::unique_ptr<kv_backing>> kv_backing::create(const kv_stream_options& kv,
                                                       const offload_options& where) {
  std::unique_ptr<kv_backing> backing(new kv_backing(kv, where));
  if (auto allocated = backing->allocate(where); !allocated.ok()) return allocated.error();
  return backing;
}

result<nothing> kv_backing::allocate(const offload_options& where) {
  const std::int64_t host = on_host_ * options_.n_batches * segment_bytes_;
  const std::int64_t partial_blocks =
      (on_disk_ + on_host_) * options_.n_batches * options_.sequences * strides_.plain;
  const std::int64_t most =
      where.host_bytes > 0 ? where.host_bytes : gpu::machine::available_bytes();
  if (host + partial_blocks > most)
    return failure{errc::out_of_memory, "the host tier must hold " +
                                            format_bytes(host + partial_blocks) +
                                            " of KV, but may take " + format_bytes(most)};
  const auto take = [](gpu::host_buffer& to, std::int64_t bytes,
                       const char* label) -> result<nothing> {
    auto memory = gpu::host_buffer::allocate(static_cast<std::size_t>(bytes), label);
    if (!memory.ok()) return from_gpu(memory.error());
    to = std::move(memory).value();
    return nothing{};
  };
  if (auto taken = take(host_, host, "KV on the host"); !taken.ok()) return taken;
  if (auto taken = take(partial_blocks_, partial_blocks, "blocks of KV that are not full");
      !taken.ok())
    return taken;
  if (on_disk_ == 0) return nothing{};
  auto store =
      where.open_store ? where.open_store() : open_file_store(where.dir, where.direct_reads);
  if (!store.ok()) return store.error();
  store_ = std::move(store).value();
  const std::int64_t on_disk = on_disk_ * options_.n_batches * segment_bytes_;
  sums_ = page_sums(on_disk, where.verify_every);
  return store_->reserve(on_disk);
}

std::int64_t kv_backing::segment_number(std::int32_t layer, std::int32_t batch) const {
  return std::int64_t{number_[static_cast<std::size_t>(layer)]} * options_.n_batches + batch;
}

unsigned char* kv_backing::host_segment(std::int32_t layer, std::int32_t batch) const {
  return host_.data() + segment_number(layer, batch) * segment_bytes_;
}

unsigned char* kv_backing::partial_blocks(std::int32_t layer, std::int32_t batch) const {
  const std::int64_t before = tier_of(layer) == tier::host ? on_disk_ * options_.n_batches : 0;
  return partial_blocks_.data() +
         (before + segment_number(layer, batch)) * options_.sequences * strides_.plain;
}

/// Small copies of host memory are put into one task, since each task costs a lock and perhaps the
/// wake-up of a thread. Each disk transfer is a separate task, so that several threads can wait for
/// the disk at once. A disk read also reads small gaps between blocks, whose bytes are not used.
std::vector<std::vector<kv_backing::extent>>
kv_backing::tasks_of(std::int32_t layer, const std::vector<block_span>& blocks,
                     transfer_direction direction) const {
  constexpr std::int64_t worth_a_read = 64 << 10;
  const bool on_disk = tier_of(layer) == tier::disk;
  const std::int64_t gap = on_disk && direction == transfer_direction::to_device ? worth_a_read : 0;
  std::vector<extent> extents;
  for (const block_span& s : blocks) {
    const std::int64_t begin = s.first * strides_.stored, end = begin + s.count * strides_.stored;
    if (!extents.empty() && begin <= extents.back().offset + extents.back().bytes + gap)
      extents.back().bytes = end - extents.back().offset;
    else
      extents.push_back({begin, end - begin});
  }
  std::vector<std::vector<extent>> tasks;
  std::int64_t in_task = transfer_bytes;
  for (const extent& e : extents)
    for (std::int64_t done = 0; done < e.bytes; done += transfer_bytes) {
      const std::int64_t bytes = std::min(transfer_bytes, e.bytes - done);
      if (in_task + bytes > transfer_bytes || on_disk) {
        tasks.emplace_back();
        in_task = 0;
      }
      tasks.back().push_back({e.offset + done, bytes});
      in_task += bytes;
    }
  return tasks;
}

result<nothing> kv_backing::write(std::int64_t at, const unsigned char* from,
                                  std::int64_t bytes) const {
  sums_.note(at, from, bytes);
  return store_->write(at, from, bytes);
}

result<nothing> kv_backing::copy(std::int32_t layer, std::int32_t batch, unsigned char* device,
                                 const extent& e, transfer_direction direction,
                                 io_worker& worker) const {
  unsigned char* on_device = device + e.offset;
  const auto bytes = static_cast<std::size_t>(e.bytes);
  if (tier_of(layer) == tier::host) {
    unsigned char* on_host = host_segment(layer, batch) + e.offset;
    link_.pass(e.bytes);
    return direction == transfer_direction::to_device
               ? from_gpu(worker.copies.to_device(on_device, on_host, bytes))
               : from_gpu(worker.copies.to_host(on_host, on_device, bytes));
  }
  const std::int64_t offset = segment_number(layer, batch) * segment_bytes_ + e.offset;
  const bool straight = gpu::device_memory_is_host();
  unsigned char* through = straight ? on_device : worker.bounce.data();
  if (direction == transfer_direction::to_device) {
    if (auto read = store_->read(offset, through, e.bytes); !read.ok()) return read;
    if (const auto wrong = sums_.first_wrong(offset, through, e.bytes))
      return failure{errc::bad_format, "offload file (" + store_->describe() + "): KV of layer " +
                                           std::to_string(layer) + " at " + std::to_string(*wrong) +
                                           " is not what was written there (checksum)"};
    link_.pass(e.bytes);
    return straight ? nothing{} : from_gpu(worker.copies.to_device(on_device, through, bytes));
  }
  if (!straight)
    if (auto copied = from_gpu(worker.copies.to_host(through, on_device, bytes)); !copied.ok())
      return copied;
  link_.pass(e.bytes);
  return write(offset, through, e.bytes);
}

result<nothing> kv_backing::copy_partial_blocks(std::int32_t layer, std::int32_t batch,
                                                unsigned char* device,
                                                const std::vector<block_range>& blocks,
                                                transfer_direction direction,
                                                io_worker& worker) const {
  const auto size = static_cast<std::size_t>(strides_.plain);
  for (const block_range& r : blocks) {
    if (!r.open && (!r.filled || options_.four_bits))
      continue; // with 4 bits, kv_stream has packed the filled block into the segment already
    unsigned char* on_device = device + r.sequence * strides_.plain;
    unsigned char* on_host = partial_blocks(layer, batch) + r.sequence * strides_.plain;
    link_.pass(strides_.plain);
    auto copied = direction == transfer_direction::to_device
                      ? worker.copies.to_device(on_device, on_host, size)
                      : worker.copies.to_host(on_host, on_device, size);
    if (!copied.ok()) return from_gpu(copied.error());
  }
  return nothing{};
}

result<nothing> kv_backing::keep_filled(std::int32_t layer, std::int32_t batch,
                                        const std::vector<block_range>& blocks) const {
  for (block_span s : spans_of(blocks, block_location::in_partial_blocks, options_.sequences))
    while (s.count > 0) {
      // In the segment (the full KV blocks of one layer and micro-batch), the blocks i of all
      // sequences are side by side in the order of the sequences, followed by the blocks i + 1. The
      // partial blocks are in the order of the sequences too. One copy can therefore move the
      // blocks i of several adjacent sequences, but it ends at the last sequence.
      const std::int32_t sequence = s.first % options_.sequences;
      const std::int32_t n = std::min(s.count, options_.sequences - sequence);
      const unsigned char* from = partial_blocks(layer, batch) + sequence * strides_.plain;
      const std::int64_t at = s.first * strides_.plain, bytes = n * strides_.plain;
      if (tier_of(layer) == tier::host)
        std::memcpy(host_segment(layer, batch) + at, from, static_cast<std::size_t>(bytes));
      else if (auto written =
                   write(segment_number(layer, batch) * segment_bytes_ + at, from, bytes);
               !written.ok())
        return written;
      s = {s.first + n, s.count - n};
    }
  return nothing{};
}

} // namespace twill::models::offload
