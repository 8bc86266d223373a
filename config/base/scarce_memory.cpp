#include "config/base/scarce_memory.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>

namespace twill {

namespace {

std::atomic<void*> reserve{nullptr};
std::size_t reserve_size = 0;

void wait_for_memory() {
  constexpr int most_tries = 50;
  constexpr std::chrono::milliseconds pause{1};
  if (void* const kept = reserve.exchange(nullptr)) {
    std::free(kept);
    return;
  }
  // Attempts in close succession belong to one allocation.
  thread_local int tries = 0;
  thread_local std::chrono::steady_clock::time_point last;
  const auto now = std::chrono::steady_clock::now();
  if (now - last > 20 * pause) tries = 0;
  if (++tries > most_tries) {
    tries = 0;
    throw std::bad_alloc();
  }
  std::this_thread::sleep_for(pause);
  last = std::chrono::steady_clock::now();
}

} // namespace

void prepare_for_scarce_memory(std::size_t reserve_bytes) {
  reserve_size = reserve_bytes;
  restore_memory_reserve();
  std::set_new_handler(wait_for_memory);
}

void restore_memory_reserve() noexcept {
  if (reserve_size == 0 || reserve.load() != nullptr) return;
  void* const taken = std::malloc(reserve_size);
  void* none = nullptr;
  if (taken != nullptr && !reserve.compare_exchange_strong(none, taken)) std::free(taken);
}

} // namespace twill
