#include "models/offload/streams/weight_ring.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "models/decoder/gpu_error.hpp"
#include "models/offload/streams/disk_store.hpp"

namespace twill::models::offload {
namespace {

/// Aligned, so that direct reads can go into every buffer.
std::int64_t largest_slot(const weight_placement& locations,
                          const std::vector<std::int32_t>& order) {
  std::int64_t largest = 0;
  for (const std::int32_t u : order)
    largest = std::max(largest, locations.group(u).staging_bytes());
  return store_aligned(largest);
}

} // namespace

result<std::unique_ptr<weight_ring>>
weight_ring::create(gpu::device& dev, const weight_placement& locations, io_pool& pool,
                    std::vector<std::int32_t> order, std::int32_t buffers) {
  std::unique_ptr<weight_ring> ring(new weight_ring(locations, pool));
  const std::int64_t staging_bytes = largest_slot(locations, order);
  auto memory = dev.allocate(static_cast<std::size_t>(buffers * staging_bytes), "weight ring",
                             gpu::filling::bit_by_bit);
  if (!memory.ok()) return from_gpu(memory.error());
  ring->memory_ = std::move(memory).value();
  for (std::int32_t i = 0; i < buffers; ++i) {
    auto made = std::make_unique<buffer>();
    made->memory = static_cast<unsigned char*>(ring->memory_.data()) + i * staging_bytes;
    ring->buffers_.push_back(std::move(made));
  }
  ring->order_ = std::move(order);
  ring->pass_size_ = ring->order_.size();
  const std::lock_guard lock(ring->mutex_);
  ring->fill_ahead();
  return ring;
}

void weight_ring::begin_pass(std::size_t n) {
  const std::lock_guard lock(mutex_);
  pass_size_ = n;
  cursor_ = 0;
  fill_ahead();
}

weight_ring::buffer* weight_ring::find(std::int32_t group) {
  for (const auto& s : buffers_)
    if (s->group == group && s->now != state::empty) return s.get();
  return nullptr;
}

weight_ring::buffer* weight_ring::free_slot(const std::vector<std::int32_t>& wanted) {
  for (const auto& s : buffers_) {
    if (s->now == state::empty) return s.get();
    const bool idle = s->now == state::ready || s->now == state::failed;
    if (idle && std::find(wanted.begin(), wanted.end(), s->group) == wanted.end()) return s.get();
  }
  return nullptr;
}

void weight_ring::fill_ahead() {
  if (pass_size_ == 0) return;
  std::vector<std::int32_t> wanted;
  for (std::size_t i = 0; i < std::min(buffers_.size(), pass_size_); ++i)
    wanted.push_back(order_[(cursor_ + i) % pass_size_]);
  for (const std::int32_t group : wanted) {
    if (find(group) != nullptr) continue;
    buffer* s = free_slot(wanted);
    if (s == nullptr) return;
    fill(*s, group);
  }
}

void weight_ring::fill(buffer& s, std::int32_t group) {
  s.group = group;
  s.now = state::filling;
  s.why.reset();
  s.transfers_left = homes_.transfers(group);
  homes_.expect(group);
  for (std::int32_t n = 0; n < homes_.transfers(group); ++n)
    pool_.post([this, &s, group, n](io_worker& worker) {
      const span_clock began(timeline_);
      auto outcome = from_gpu(s.last_use.wait());
      if (outcome.ok()) outcome = homes_.transfer(group, n, s.memory, worker);
      began.end(homes_.from_disk(group, n) ? lane::disk_read : lane::host_to_device, group);
      transferred(s, outcome);
    });
}

void weight_ring::transferred(buffer& s, const result<nothing>& outcome) {
  const std::lock_guard lock(mutex_);
  if (!outcome.ok() && !s.why) s.why = outcome.error();
  if (--s.transfers_left > 0) return;
  s.now = s.why ? state::failed : state::ready;
  const transfer_group& u = homes_.group(s.group);
  stats_.disk_bytes += u.disk_bytes;
  stats_.host_bytes += u.host_bytes;
  fill_ahead(); // a buffer whose group nobody wants any more is free now
  changed_.notify_all();
}

result<nothing> weight_ring::acquire(std::int32_t group) {
  std::unique_lock lock(mutex_);
  const auto at = std::find(order_.begin(), order_.end(), group);
  TWILL_ASSERT(at != order_.end(), "acquire: the group is not in the ring's order");
  cursor_ = static_cast<std::size_t>(at - order_.begin());
  fill_ahead();
  const auto began = std::chrono::steady_clock::now();
  buffer* s = nullptr;
  changed_.wait(lock, [&] {
    s = find(group);
    return s != nullptr && s->now != state::filling;
  });
  stats_.waited_seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (s->now == state::failed) return *s->why;
  s->now = state::in_use;
  for (const weight_location& h : homes_.group(group).locations)
    if (h.where != tier::device) h.target->place(s->memory + h.staging_offset);
  return nothing{};
}

void weight_ring::release(std::int32_t group) {
  const std::lock_guard lock(mutex_);
  buffer* s = find(group);
  TWILL_ASSERT(s != nullptr && s->now == state::in_use, "release: the group is not in use");
  for (const weight_location& h : homes_.group(group).locations)
    if (h.where != tier::device) h.target->place(nullptr);
  s->last_use.record();
  s->now = state::ready;
  const auto at = std::find(order_.begin(), order_.end(), group);
  cursor_ =
      (static_cast<std::size_t>(at - order_.begin()) + 1) % std::max<std::size_t>(pass_size_, 1);
  fill_ahead();
}

ring_stats weight_ring::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

} // namespace twill::models::offload
