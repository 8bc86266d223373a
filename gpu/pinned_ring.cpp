#include "gpu/pinned_ring.hpp"

#include <utility>

namespace twill::gpu {

result<pinned_ring> pinned_ring::create(std::size_t slot_bytes, const char* label, int slots) {
  const std::size_t apart = (slot_bytes + 63) / 64 * 64;
  auto memory = host_buffer::allocate(apart * static_cast<std::size_t>(slots), label);
  if (!memory.ok()) return memory.error();
  pinned_ring ring;
  ring.memory_ = std::move(memory).value();
  for (int i = 0; i < slots; ++i) {
    ring.slots_.push_back(std::make_unique<slot>());
    ring.slots_.back()->memory = ring.memory_.data() + static_cast<std::size_t>(i) * apart;
  }
  return result<pinned_ring>(std::move(ring));
}

result<unsigned char*> pinned_ring::begin() {
  at_ = (at_ + 1) % slots_.size();
  slot& next = *slots_[at_];
  if (next.used)
    if (auto waited = next.read.wait(); !waited.ok()) return waited.error();
  return result<unsigned char*>(next.memory);
}

void pinned_ring::end(device& dev) {
  slots_[at_]->read.record(dev);
  slots_[at_]->used = true;
}

} // namespace twill::gpu
