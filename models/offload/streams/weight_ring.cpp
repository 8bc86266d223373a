#include "models/offload/streams/weight_ring.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "models/decoder/gpu_error.hpp"
#include "models/offload/streams/disk_store.hpp"

namespace twill::models::offload {
namespace {

/// The bytes of the largest group, aligned so that direct reads can go into every buffer.
std::int64_t largest_group(const weight_placement& placement,
                           const std::vector<std::int32_t>& order) {
  std::int64_t largest = 0;
  for (const std::int32_t u : order)
    largest = std::max(largest, placement.group(u).staging_bytes());
  return store_aligned(largest);
}

} // namespace

result<std::unique_ptr<weight_ring>>
weight_ring::create(gpu::device& dev, const weight_placement& placement, io_pool& pool,
                    std::vector<std::int32_t> order, std::int32_t buffers) {
  std::unique_ptr<weight_ring> ring(new weight_ring(dev, placement, pool));
  const std::int64_t staging_bytes = largest_group(placement, order);
  auto memory = dev.allocate(static_cast<std::size_t>(buffers * staging_bytes), "weight ring",
                             gpu::page_hint::filled_gradually);
  if (!memory.ok()) return from_gpu(memory.error());
  ring->memory_ = std::move(memory).value();
  ring->buffers_.create(static_cast<unsigned char*>(ring->memory_.data()), buffers, staging_bytes);
  for (const auto& b : ring->buffers_.all())
    ring->arrivals_[b.get()].create(pool.workers());
  ring->order_ = std::move(order);
  ring->pass_size_ = ring->order_.size();
  const auto lock = ring->buffers_.lock();
  ring->fill_ahead();
  return ring;
}

void weight_ring::begin_pass(std::size_t n) {
  const auto lock = buffers_.lock();
  pass_size_ = n;
  cursor_ = 0;
  fill_ahead();
}

void weight_ring::fill_ahead() {
  if (pass_size_ == 0) return;
  std::vector<std::int32_t> wanted;
  for (std::size_t i = 0; i < std::min(buffers_.all().size(), pass_size_); ++i)
    wanted.push_back(order_[(cursor_ + i) % pass_size_]);
  for (const auto& b : buffers_.all())
    b->awaited = std::find(wanted.begin(), wanted.end(), b->content) != wanted.end();
  for (const std::int32_t group : wanted) {
    if (buffers_.find(group) != nullptr) continue;
    staging_buffer* b = buffers_.idle(false);
    if (b == nullptr) return;
    fill(*b, group);
  }
}

void weight_ring::fill(staging_buffer& b, std::int32_t group) {
  const std::int32_t transfers = placement_.transfers(group);
  arrivals& arriving = arrivals_.at(&b);
  arriving.turn();
  buffers_.assign(b, group);
  b.awaited = true;
  buffers_.begin_copies(b, buffer_state::filling, transfers);
  placement_.prefetch(group);
  try {
    post_transfers(b, arriving, group, transfers);
  } catch (const std::bad_alloc&) { // nothing was posted
    for (std::int32_t n = 0; n < transfers; ++n)
      buffers_.end_copy(b, failure{errc::out_of_memory, std::string("no memory to fetch weights")});
  }
}

void weight_ring::post_transfers(staging_buffer& b, arrivals& arriving, std::int32_t group,
                                 std::int32_t transfers) {
  std::vector<io_pool::task> all;
  all.reserve(static_cast<std::size_t>(transfers));
  for (std::int32_t n = 0; n < transfers; ++n)
    all.push_back([this, &b, &arriving, group, n](io_worker& worker) {
      const span_clock began(timeline_);
      const bool disk = placement_.from_disk(group, n);
      auto outcome = arriving.follow(b, worker, disk);
      if (outcome.ok()) outcome = placement_.transfer(group, n, b.memory, worker);
      arriving.now[worker.number]->end.record(worker.copies);
      began.end(disk ? lane::disk_read : lane::host_to_device, group);
      transferred(b, group, outcome, worker);
    });
  pool_.post_all(std::move(all));
}

void weight_ring::arrivals::create(std::size_t workers) {
  for (auto* all : {&now, &before})
    for (std::size_t i = 0; i < workers; ++i)
      all->push_back(std::make_unique<arrival>());
}

void weight_ring::arrivals::turn() {
  now.swap(before);
  for (const auto& a : now)
    a->pending = false;
}

/// Waits until a buffer may be overwritten. With `by_host` the worker's thread reads from the disk
/// directly into the buffer. Nothing on the device can delay such a read, so the thread itself
/// waits until the device has finished using the buffer and earlier copies into it have ended.
/// Otherwise only the worker's copy stream waits.
result<nothing> weight_ring::arrivals::follow(staging_buffer& b, io_worker& worker,
                                              bool by_host) const {
  auto outcome = by_host ? b.last_use.wait() : worker.copies.follow(b.last_use);
  for (const auto& a : before)
    if (outcome.ok() && a->pending)
      outcome = by_host ? a->end.wait() : worker.copies.follow(a->end);
  return from_gpu(outcome);
}

result<nothing> weight_ring::arrivals::device_follows(gpu::device& dev) const {
  for (const auto& a : now)
    if (a->pending) {
      a->pending = false; // from now on the marker of the buffer's last use covers these copies
      if (auto outcome = a->end.device_follows(dev); !outcome.ok()) return from_gpu(outcome);
    }
  return nothing{};
}

void weight_ring::transferred(staging_buffer& b, std::int32_t group, const result<nothing>& outcome,
                              const io_worker& worker) {
  const auto lock = buffers_.lock();
  arrivals_.at(&b).now[worker.number]->pending = true;
  if (!buffers_.end_copy(b, outcome)) return;
  const transfer_group& moved = placement_.group(group);
  stats_.disk_bytes += moved.disk_bytes;
  stats_.host_bytes += moved.host_bytes;
  fill_ahead(); // the buffer may take another group if no pass awaits its content any more
}

result<nothing> weight_ring::acquire(std::int32_t group) {
  auto lock = buffers_.lock();
  const auto at = std::find(order_.begin(), order_.end(), group);
  TWILL_ASSERT(at != order_.end(), "acquire: the group is not in the ring's order");
  cursor_ = static_cast<std::size_t>(at - order_.begin());
  fill_ahead();
  const auto buffer = buffers_.acquire(lock, group);
  if (!buffer.ok()) return buffer.error();
  if (auto ordered = arrivals_.at(buffer.value()).device_follows(dev_); !ordered.ok())
    return ordered;
  if (records_uses_) used_since_ = span_recorder::clock::now();
  for (const weight_location& h : placement_.group(group).locations)
    if (h.where != tier::device) h.target->place(buffer.value()->memory + h.staging_offset);
  return nothing{};
}

void weight_ring::release(std::int32_t group) {
  const auto lock = buffers_.lock();
  staging_buffer* b = buffers_.find(group);
  TWILL_ASSERT(b != nullptr && b->state == buffer_state::in_use,
               "release: the group is not in use");
  for (const weight_location& h : placement_.group(group).locations)
    if (h.where != tier::device) h.target->place(nullptr);
  b->last_use.record(dev_);
  if (records_uses_) timeline_.load()->add(lane::compute, group, -1, used_since_);
  buffers_.end_use(*b, buffer_state::ready);
  const auto at = std::find(order_.begin(), order_.end(), group);
  cursor_ =
      (static_cast<std::size_t>(at - order_.begin()) + 1) % std::max<std::size_t>(pass_size_, 1);
  fill_ahead();
}

ring_stats weight_ring::stats() const {
  const auto lock = buffers_.lock();
  ring_stats all = stats_;
  all.waited_seconds = buffers_.waited_seconds();
  return all;
}

} // namespace twill::models::offload
