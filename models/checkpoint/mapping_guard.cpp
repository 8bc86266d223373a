#include "models/checkpoint/mapping_guard.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace twill::models {

namespace {

/// The address range of one mapped file whose SIGBUS signals are handled. The entry is free if
/// `bytes` is 0. `data` is written before `bytes`, and does not change until the entry is free
/// again.
struct slot {
  std::atomic<std::uintptr_t> data{0};
  std::atomic<std::size_t> bytes{0};
};

// One entry per mapped file. A model has at most some hundred files. The table has a fixed size
// because the signal handler may only use data that needs no lock.
std::array<slot, 2048> slots;
std::atomic<std::uint64_t> n_faults{0};
std::mutex adding; ///< held while a guard is added
struct sigaction before {};
long page_bytes = 4096;

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const slot& s : slots) {
    const std::size_t bytes = s.bytes.load(std::memory_order_acquire);
    const std::uintptr_t data = s.data.load(std::memory_order_relaxed);
    if (bytes == 0 || at < data || at >= data + bytes) continue;
    const std::uintptr_t page =
        at / static_cast<std::uintptr_t>(page_bytes) * static_cast<std::uintptr_t>(page_bytes);
    void* const zeros = ::mmap(reinterpret_cast<void*>(page), data + bytes - page, PROT_READ,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED) break;
    n_faults.fetch_add(1, std::memory_order_relaxed);
    return; // the faulting read is repeated, and reads zeros
  }
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr)
    return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    return before.sa_handler(signal);
  ::sigaction(SIGBUS, &before, nullptr); // the faulting read is repeated, and ends the process
}

void install() {
  static std::once_flag once;
  std::call_once(once, [] {
    page_bytes = ::sysconf(_SC_PAGESIZE);
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    ::sigaction(SIGBUS, &action, &before);
  });
}

} // namespace

mapping_guard::mapping_guard(void* data, std::size_t bytes) {
  install();
  const auto page = static_cast<std::size_t>(page_bytes);
  const std::lock_guard lock(adding);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].bytes.load(std::memory_order_relaxed) != 0) continue;
    slots[i].data.store(reinterpret_cast<std::uintptr_t>(data), std::memory_order_relaxed);
    slots[i].bytes.store((bytes + page - 1) / page * page, std::memory_order_release);
    slot_ = static_cast<int>(i);
    return;
  }
}

mapping_guard::~mapping_guard() {
  if (slot_ >= 0) slots[static_cast<std::size_t>(slot_)].bytes.store(0, std::memory_order_release);
}

std::uint64_t mapping_guard::faults() {
  return n_faults.load(std::memory_order_relaxed);
}

} // namespace twill::models
