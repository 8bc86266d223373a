#include "models/offload/kv_homes.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "config/base/units.hpp"
#include "gpu/host/machine.hpp"
#include "gpu/ops/kv4.hpp"
#include "models/detail/gpu_error.hpp"
#include "models/offload/tiers.hpp"

namespace twill::models::offload {
namespace {

void add_part(kv_parts& parts, std::int64_t block_bytes, std::int32_t n_blocks) {
  parts.at.push_back(parts.bytes);
  parts.block_bytes.push_back(block_bytes);
  parts.bytes += store_aligned(block_bytes * n_blocks);
}

} // namespace

kv_parts kv_parts::on_device(const gpu::kv_layer& shape) {
  const std::int64_t tokens = std::int64_t{shape.n_kv_heads} * shape.block_tokens;
  const std::int64_t values =
      tokens * shape.head_dim * static_cast<std::int64_t>(gpu::size_of(shape.type));
  kv_parts parts;
  add_part(parts, values, shape.n_blocks);
  add_part(parts, values, shape.n_blocks);
  if (shape.type != gpu::dtype::i8) return parts;
  add_part(parts, tokens * std::int64_t{sizeof(float)}, shape.n_blocks);
  add_part(parts, tokens * std::int64_t{sizeof(float)}, shape.n_blocks);
  return parts;
}

/// Packed blocks take whole pages, so that a disk's page never holds a neighbour that is missing.
kv_parts kv_parts::at_home(const kv_stream_options& kv) {
  if (!kv.four_bits) return on_device(kv.shape);
  kv_parts parts;
  add_part(parts, store_aligned(gpu::kv4_block_bytes(kv.shape)), kv.shape.n_blocks);
  return parts;
}

std::vector<tier> kv_homes::of_layers(const kv_stream_options& kv) {
  return assign_tiers(std::vector<std::int64_t>(static_cast<std::size_t>(kv.n_layers), 1), kv.kv);
}

kv_homes::kv_homes(const kv_stream_options& kv, const offload_options& where)
    : options_(kv), link_(where.link_bytes_per_second), homes_(of_layers(kv)),
      device_parts_(kv_parts::on_device(kv.shape)), home_parts_(kv_parts::at_home(kv)) {
  for (const tier t : homes_) {
    std::int64_t& n = t == tier::host ? on_host_ : on_disk_;
    number_.push_back(static_cast<std::int32_t>(n));
    n += t == tier::device ? 0 : 1;
  }
  for (const std::int64_t part : device_parts_.block_bytes)
    block_bytes_ += part;
}

result<std::unique_ptr<kv_homes>> kv_homes::create(const kv_stream_options& kv,
                                                   const offload_options& where) {
  std::unique_ptr<kv_homes> made(new kv_homes(kv, where));
  if (auto got = made->allocate(where); !got.ok()) return got.error();
  return made;
}

result<nothing> kv_homes::allocate(const offload_options& where) {
  const std::int64_t host = on_host_ * options_.n_batches * home_parts_.bytes;
  const std::int64_t open = (on_disk_ + (options_.four_bits ? on_host_ : 0)) * options_.n_batches *
                            options_.sequences * block_bytes_;
  const std::int64_t most = where.host_bytes > 0 ? where.host_bytes : gpu::host::available_bytes();
  if (host + open > most)
    return failure{errc::out_of_memory, "the host tier must hold " + format_bytes(host + open) +
                                            " of KV, but may take " + format_bytes(most)};
  const auto take = [](gpu::host_buffer& to, std::int64_t bytes,
                       const char* label) -> result<nothing> {
    auto memory = gpu::host_buffer::allocate(static_cast<std::size_t>(bytes), label);
    if (!memory.ok()) return from_gpu(memory.error());
    to = std::move(memory).value();
    return nothing{};
  };
  if (auto got = take(host_, host, "KV on the host"); !got.ok()) return got;
  if (auto got = take(open_, open, "open blocks of KV"); !got.ok()) return got;
  if (on_disk_ == 0) return nothing{};
  auto store =
      where.open_store ? where.open_store() : open_file_store(where.dir, where.direct_reads);
  if (!store.ok()) return store.error();
  store_ = std::move(store).value();
  sums_ = page_sums(on_disk_ * options_.n_batches * home_parts_.bytes, where.verify_every);
  return nothing{};
}

std::int64_t kv_homes::image_number(std::int32_t layer, std::int32_t batch) const {
  return std::int64_t{number_[static_cast<std::size_t>(layer)]} * options_.n_batches + batch;
}

unsigned char* kv_homes::host_image(std::int32_t layer, std::int32_t batch) const {
  return host_.data() + image_number(layer, batch) * home_parts_.bytes;
}

std::vector<block_span> kv_homes::closed(std::int32_t layer,
                                         const std::vector<block_range>& blocks) const {
  std::vector<std::int32_t> numbers;
  for (const block_range& r : blocks) {
    const std::int32_t end = r.first + r.count - (r.open && keeps_open(layer) ? 1 : 0);
    for (std::int32_t i = r.first; i < end; ++i)
      numbers.push_back(i * options_.sequences + r.sequence);
  }
  std::sort(numbers.begin(), numbers.end());
  std::vector<block_span> spans;
  for (const std::int32_t n : numbers) {
    if (spans.empty() || spans.back().first + spans.back().count != n) spans.push_back({n, 0});
    ++spans.back().count;
  }
  return spans;
}

/// Where the blocks lie, for a disk in whole pages. Pieces up to `gap` bytes apart are joined.
std::vector<kv_homes::extent> kv_homes::extents(const std::vector<block_span>& blocks, bool on_disk,
                                                std::int64_t gap) const {
  std::vector<extent> all;
  for (std::size_t part = 0; part < home_parts_.at.size(); ++part) {
    const std::size_t first_of_part = all.size();
    for (const block_span& s : blocks) {
      std::int64_t begin = home_parts_.at[part] + s.first * home_parts_.block_bytes[part];
      std::int64_t end = begin + s.count * home_parts_.block_bytes[part];
      if (on_disk) {
        begin = begin / store_alignment * store_alignment;
        end = store_aligned(end);
      }
      if (all.size() > first_of_part && begin <= all.back().offset + all.back().bytes + gap)
        all.back().bytes = std::max(end - all.back().offset, all.back().bytes);
      else
        all.push_back({begin, end - begin});
    }
  }
  return all;
}

/// Many small copies are one task, since each task costs a lock and perhaps a wake-up; reads and
/// writes of a disk wait, and are tasks of their own. Reads of a disk take small gaps along: what
/// lies there is copied over later, if it is an open block, or is nobody's.
std::vector<std::vector<kv_homes::extent>>
kv_homes::tasks_of(std::int32_t layer, const std::vector<block_span>& closed, way direction) const {
  constexpr std::int64_t worth_a_read = 64 << 10;
  const bool on_disk = home_of(layer) == tier::disk;
  const std::int64_t gap = on_disk && direction == way::to_device ? worth_a_read : 0;
  std::vector<std::vector<extent>> tasks;
  std::int64_t in_task = transfer_bytes;
  for (const extent& e : extents(closed, on_disk, gap))
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

result<nothing> kv_homes::copy(std::int32_t layer, std::int32_t batch, const kv_image& device,
                               const extent& e, way direction, io_worker& worker) const {
  unsigned char* there = (options_.four_bits ? device.packed : device.plain) + e.offset;
  const auto bytes = static_cast<std::size_t>(e.bytes);
  if (home_of(layer) == tier::host) {
    unsigned char* home = host_image(layer, batch) + e.offset;
    link_.pass(e.bytes);
    return direction == way::to_device ? from_gpu(worker.copies.to_device(there, home, bytes))
                                       : from_gpu(worker.copies.to_host(home, there, bytes));
  }
  const std::int64_t home = image_number(layer, batch) * home_parts_.bytes + e.offset;
  const bool straight = gpu::device_memory_is_host();
  unsigned char* through = straight ? there : worker.bounce.data();
  if (direction == way::to_device) {
    if (auto got = store_->read(home, through, e.bytes); !got.ok()) return got;
    if (const auto wrong = sums_.first_wrong(home, through, e.bytes))
      return failure{errc::bad_format, "offload file (" + store_->describe() + "): KV of layer " +
                                           std::to_string(layer) + " at " + std::to_string(*wrong) +
                                           " is not what was written there (checksum)"};
    link_.pass(e.bytes);
    return straight ? nothing{} : from_gpu(worker.copies.to_device(there, through, bytes));
  }
  if (!straight)
    if (auto got = from_gpu(worker.copies.to_host(through, there, bytes)); !got.ok()) return got;
  link_.pass(e.bytes);
  sums_.note(home, through, e.bytes);
  return store_->write(home, through, e.bytes);
}

result<nothing> kv_homes::copy_open(std::int32_t layer, std::int32_t batch, const kv_image& device,
                                    const std::vector<block_range>& blocks, way direction,
                                    io_worker& worker) const {
  if (!keeps_open(layer)) return nothing{};
  const std::int64_t before = home_of(layer) == tier::host ? on_disk_ * options_.n_batches : 0;
  const std::int64_t image = before + image_number(layer, batch);
  for (const block_range& r : blocks) {
    if (!r.open) continue;
    const std::int64_t block =
        std::int64_t{r.first + r.count - 1} * options_.sequences + r.sequence;
    unsigned char* home = open_.data() + (image * options_.sequences + r.sequence) * block_bytes_;
    for (std::size_t part = 0; part < device_parts_.at.size(); ++part) {
      const std::int64_t bytes = device_parts_.block_bytes[part];
      unsigned char* there = device.plain + device_parts_.at[part] + block * bytes;
      const auto size = static_cast<std::size_t>(bytes);
      auto copied = direction == way::to_device ? worker.copies.to_device(there, home, size)
                                                : worker.copies.to_host(home, there, size);
      if (!copied.ok()) return from_gpu(copied.error());
      home += bytes;
    }
    link_.pass(block_bytes_);
  }
  return nothing{};
}

} // namespace twill::models::offload
