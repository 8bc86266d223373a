#include "models/offload/streams/hidden_stream.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "config/base/assert.hpp"
#include "config/base/units.hpp"
#include "gpu/machine.hpp"
#include "models/decoder/gpu_error.hpp"
#include "models/offload/streams/checksum.hpp"

namespace twill::models::offload {
namespace {

std::int64_t states_in(const hidden_options& o, tier where) {
  const auto tiers = spread_tiers(o.n_batches, o.hidden);
  return o.chunks * std::count(tiers.begin(), tiers.end(), where);
}

std::int64_t transfers_of(std::int64_t bytes) {
  return (bytes + transfer_bytes - 1) / transfer_bytes;
}

} // namespace

std::int64_t hidden_stream::device_bytes(const hidden_options& o) {
  const std::int64_t resident = states_in(o, tier::device);
  const bool travels = resident < std::int64_t{o.n_batches} * o.chunks;
  return ((travels ? o.buffers : 0) + resident) * store_aligned(o.state_bytes);
}

hidden_stream::hidden_stream(gpu::device& dev, const hidden_options& hidden,
                             const offload_options& where)
    : dev_(dev), options_(hidden), room_(store_aligned(hidden.state_bytes)),
      tiers_(spread_tiers(hidden.n_batches, hidden.hidden)), link_(where.link_bytes_per_second) {}

result<std::unique_ptr<hidden_stream>> hidden_stream::create(gpu::device& dev,
                                                             const hidden_options& hidden,
                                                             const offload_options& where) {
  std::unique_ptr<hidden_stream> stream(new hidden_stream(dev, hidden, where));
  if (auto allocated = stream->allocate(where); !allocated.ok()) return allocated.error();
  return stream;
}

result<nothing> hidden_stream::allocate(const offload_options& where) {
  auto memory = dev_.allocate(static_cast<std::size_t>(device_bytes(options_)), "hidden states",
                              gpu::page_hint::filled_gradually);
  if (!memory.ok()) return from_gpu(memory.error());
  memory_ = std::move(memory).value();
  const std::int64_t on_host = states_in(options_, tier::host) * room_;
  const std::int64_t on_disk = states_in(options_, tier::disk);
  const std::int64_t most =
      where.host_bytes > 0 ? where.host_bytes : gpu::machine::available_bytes();
  if (on_host > most)
    return failure{errc::out_of_memory, "the host tier must hold " + format_bytes(on_host) +
                                            " of hidden states, but may take " +
                                            format_bytes(most)};
  auto host = gpu::host_buffer::allocate(static_cast<std::size_t>(on_host), "hidden states");
  if (!host.ok()) return from_gpu(host.error());
  host_ = std::move(host).value();
  if (on_disk > 0) {
    auto store =
        where.open_store ? where.open_store() : open_file_store(where.dir, where.direct_reads);
    if (!store.ok()) return store.error();
    store_ = std::move(store).value();
    sums_.resize(static_cast<std::size_t>(on_disk * transfers_of(room_)));
  }
  if (on_host == 0 && on_disk == 0) return nothing{};
  buffers_.create(static_cast<unsigned char*>(memory_.data()), options_.buffers, room_);
  auto pool = io_pool::start(where.io_threads);
  if (!pool.ok()) return pool.error();
  pool_ = std::move(pool).value();
  return nothing{};
}

std::int64_t hidden_stream::number_of(hidden_state of) const {
  const auto end = tiers_.begin() + of.batch;
  return std::count(tiers_.begin(), end, tier_of(of)) * options_.chunks + of.chunk;
}

void hidden_stream::load_ahead(hidden_state of, std::int64_t bytes) {
  if (tier_of(of) == tier::device) return;
  const auto lock = buffers_.lock();
  if (staging_buffer* held = buffers_.find(content_of(of)); held != nullptr) {
    held->awaited = true;
    return;
  }
  staging_buffer* b = buffers_.idle(false);
  if (b == nullptr) return;
  buffers_.assign(*b, content_of(of));
  b->awaited = true;
  move(*b, of, bytes, true);
}

result<float*> hidden_stream::acquire(hidden_state of, std::int64_t bytes, bool anew) {
  TWILL_ASSERT(bytes <= options_.state_bytes, "hidden_stream: a state is larger than was said");
  if (tier_of(of) == tier::device) {
    const auto ring = static_cast<std::int64_t>(buffers_.all().size());
    return reinterpret_cast<float*>(static_cast<unsigned char*>(memory_.data()) +
                                    (ring + number_of(of)) * room_);
  }
  auto lock = buffers_.lock();
  const auto buffer = buffers_.acquire(lock, content_of(of), [&](staging_buffer& b) {
    buffers_.assign(b, content_of(of));
    if (!anew) move(b, of, bytes, true);
  });
  if (!buffer.ok()) return buffer.error();
  return reinterpret_cast<float*>(buffer.value()->memory);
}

void hidden_stream::release(hidden_state of, std::int64_t bytes, bool dropped) {
  if (tier_of(of) == tier::device) return;
  const auto lock = buffers_.lock();
  staging_buffer* b = buffers_.find(content_of(of));
  TWILL_ASSERT(b != nullptr && b->state == buffer_state::in_use,
               "release: the state is not in use");
  b->last_use.record(dev_);
  if (dropped)
    buffers_.end_use(*b, buffer_state::free);
  else
    move(*b, of, bytes, false);
}

/// Posts the copies of a state; after the last one the buffer is ready.
void hidden_stream::move(staging_buffer& b, hidden_state of, std::int64_t bytes, bool to_device) {
  (to_device ? stats_.loaded_bytes : stats_.stored_bytes) += bytes;
  buffers_.begin_copies(b, to_device ? buffer_state::filling : buffer_state::storing,
                        static_cast<std::int32_t>(transfers_of(bytes)));
  const bool on_disk = tier_of(of) == tier::disk;
  const lane where = on_disk ? (to_device ? lane::disk_read : lane::disk_write)
                             : (to_device ? lane::host_to_device : lane::device_to_host);
  for (std::int64_t at = 0; at < bytes; at += transfer_bytes) {
    auto task = [this, &b, of, at, n = std::min(transfer_bytes, bytes - at), to_device, where,
                 layer = layer_](io_worker& worker) {
      auto outcome = from_gpu(b.last_use.wait());
      const span_clock began(timeline_);
      if (outcome.ok()) outcome = copy(of, b.memory, at, n, to_device, worker);
      began.end(where, layer, of.batch);
      const auto lock = buffers_.lock();
      buffers_.end_copy(b, outcome);
    };
    // Stores go first, because they make buffers idle.
    to_device ? pool_->post(std::move(task)) : pool_->post_first(std::move(task));
  }
}

result<nothing> hidden_stream::copy(hidden_state of, unsigned char* device, std::int64_t at,
                                    std::int64_t bytes, bool to_device, io_worker& worker) {
  const auto n = static_cast<std::size_t>(bytes);
  link_.pass(bytes);
  if (tier_of(of) == tier::host) {
    unsigned char* host = host_.data() + number_of(of) * room_ + at;
    return from_gpu(to_device ? worker.copies.to_device(device + at, host, n)
                              : worker.copies.to_host(host, device + at, n));
  }
  const std::int64_t offset = number_of(of) * room_ + at;
  unsigned char* through = worker.bounce.data();
  std::uint64_t& sum =
      sums_[static_cast<std::size_t>(number_of(of) * transfers_of(room_) + at / transfer_bytes)];
  if (!to_device) {
    if (auto copied = from_gpu(worker.copies.to_host(through, device + at, n)); !copied.ok())
      return copied;
    sum = checksum(through, bytes);
    return store_->write(offset, through, store_aligned(bytes));
  }
  if (auto read = store_->read(offset, through, store_aligned(bytes)); !read.ok()) return read;
  if (checksum(through, bytes) != sum)
    return failure{errc::bad_format, "offload file (" + store_->describe() +
                                         "): hidden states at " + std::to_string(offset) +
                                         " are not what was written there (checksum)"};
  return from_gpu(worker.copies.to_device(device + at, through, n));
}

transfer_stats hidden_stream::stats() const {
  const auto lock = buffers_.lock();
  transfer_stats all = stats_;
  all.waited_seconds = buffers_.waited_seconds();
  all.moving_seconds = pool_ ? pool_->busy_seconds() : 0;
  return all;
}

} // namespace twill::models::offload
