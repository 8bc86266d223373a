#include "models/offload/weight_ring.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "models/decoder/gpu_error.hpp"
#include "models/offload/block_store.hpp"

namespace twill::models::offload {
namespace {

/// Aligned, so that direct reads can go into every slot.
std::int64_t largest_slot(const weight_homes& homes, const std::vector<std::int32_t>& order) {
  std::int64_t largest = 0;
  for (const std::int32_t u : order)
    largest = std::max(largest, homes.unit(u).slot_bytes());
  return store_aligned(largest);
}

} // namespace

result<std::unique_ptr<weight_ring>> weight_ring::create(gpu::device& dev,
                                                         const weight_homes& homes, io_pool& pool,
                                                         std::vector<std::int32_t> order,
                                                         std::int32_t slots) {
  std::unique_ptr<weight_ring> ring(new weight_ring(homes, pool));
  const std::int64_t slot_bytes = largest_slot(homes, order);
  auto memory = dev.allocate(static_cast<std::size_t>(slots * slot_bytes), "weight ring",
                             gpu::page_hint::filled_gradually);
  if (!memory.ok()) return from_gpu(memory.error());
  ring->memory_ = std::move(memory).value();
  for (std::int32_t i = 0; i < slots; ++i) {
    auto made = std::make_unique<slot>();
    made->memory = static_cast<unsigned char*>(ring->memory_.data()) + i * slot_bytes;
    ring->slots_.push_back(std::move(made));
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

weight_ring::slot* weight_ring::find(std::int32_t unit) {
  for (const auto& s : slots_)
    if (s->unit == unit && s->now != state::empty) return s.get();
  return nullptr;
}

weight_ring::slot* weight_ring::free_slot(const std::vector<std::int32_t>& wanted) {
  for (const auto& s : slots_) {
    if (s->now == state::empty) return s.get();
    const bool idle = s->now == state::ready || s->now == state::failed;
    if (idle && std::find(wanted.begin(), wanted.end(), s->unit) == wanted.end()) return s.get();
  }
  return nullptr;
}

void weight_ring::fill_ahead() {
  if (pass_size_ == 0) return;
  std::vector<std::int32_t> wanted;
  for (std::size_t i = 0; i < std::min(slots_.size(), pass_size_); ++i)
    wanted.push_back(order_[(cursor_ + i) % pass_size_]);
  for (const std::int32_t unit : wanted) {
    if (find(unit) != nullptr) continue;
    slot* s = free_slot(wanted);
    if (s == nullptr) return;
    fill(*s, unit);
  }
}

void weight_ring::fill(slot& s, std::int32_t unit) {
  s.unit = unit;
  s.now = state::filling;
  s.why.reset();
  s.transfers_left = homes_.transfers(unit);
  homes_.expect(unit);
  for (std::int32_t n = 0; n < homes_.transfers(unit); ++n)
    pool_.post([this, &s, unit, n](io_worker& worker) {
      const span_clock began(timeline_);
      auto outcome = from_gpu(s.last_use.wait());
      if (outcome.ok()) outcome = homes_.transfer(unit, n, s.memory, worker);
      began.end(homes_.from_disk(unit, n) ? lane::disk_read : lane::host_to_device, unit);
      transferred(s, outcome);
    });
}

void weight_ring::transferred(slot& s, const result<nothing>& outcome) {
  const std::lock_guard lock(mutex_);
  if (!outcome.ok() && !s.why) s.why = outcome.error();
  if (--s.transfers_left > 0) return;
  s.now = s.why ? state::failed : state::ready;
  const weight_unit& u = homes_.unit(s.unit);
  stats_.disk_bytes += u.disk_bytes;
  stats_.host_bytes += u.host_bytes;
  fill_ahead(); // a slot whose unit nobody wants any more is free now
  changed_.notify_all();
}

result<nothing> weight_ring::acquire(std::int32_t unit) {
  std::unique_lock lock(mutex_);
  const auto at = std::find(order_.begin(), order_.end(), unit);
  TWILL_ASSERT(at != order_.end(), "acquire: the unit is not in the ring's order");
  cursor_ = static_cast<std::size_t>(at - order_.begin());
  fill_ahead();
  const auto began = std::chrono::steady_clock::now();
  slot* s = nullptr;
  changed_.wait(lock, [&] {
    s = find(unit);
    return s != nullptr && s->now != state::filling;
  });
  stats_.waited_seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (s->now == state::failed) return *s->why;
  s->now = state::in_use;
  for (const home& h : homes_.unit(unit).homes)
    if (h.where != tier::device) h.target->place(s->memory + h.slot_offset);
  return nothing{};
}

void weight_ring::release(std::int32_t unit) {
  const std::lock_guard lock(mutex_);
  slot* s = find(unit);
  TWILL_ASSERT(s != nullptr && s->now == state::in_use, "release: the unit is not in use");
  for (const home& h : homes_.unit(unit).homes)
    if (h.where != tier::device) h.target->place(nullptr);
  s->last_use.record();
  s->now = state::ready;
  const auto at = std::find(order_.begin(), order_.end(), unit);
  cursor_ =
      (static_cast<std::size_t>(at - order_.begin()) + 1) % std::max<std::size_t>(pass_size_, 1);
  fill_ahead();
}

ring_stats weight_ring::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

} // namespace twill::models::offload
