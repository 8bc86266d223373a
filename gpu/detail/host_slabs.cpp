#include "gpu/detail/host_slabs.hpp"

#include <algorithm>

#include <sys/mman.h>

#include "gpu/detail/huge_pages.hpp"

namespace twill::gpu::detail {

namespace {

constexpr std::size_t slab_bytes = 16 * huge_page_bytes;
/// Larger allocations get a slab of their own.
constexpr std::size_t most_shared = 2 * huge_page_bytes;

/// Moves 2 MiB of memory to a huge page. On a system without huge pages the memory stays in small
/// pages.
void move_to_huge_page(char* memory) {
#ifdef MADV_HUGEPAGE
#ifndef MADV_COLLAPSE
  constexpr int MADV_COLLAPSE = 25; // Linux 6.1; older headers lack it
#endif
  madvise(memory, huge_page_bytes, MADV_HUGEPAGE);
  madvise(memory, huge_page_bytes, MADV_COLLAPSE);
#else
  static_cast<void>(memory);
#endif
}

} // namespace

host_slabs::~host_slabs() {
  stop_settling();
  for (const slab& s : slabs_)
    munmap(s.memory, s.bytes);
}

void* host_slabs::take(std::size_t bytes) {
  const std::size_t size = rounded_up(bytes, 64);
  const bool alone = size > most_shared;
  for (slab& s : slabs_)
    if (!alone && s.used + size <= s.bytes) {
      void* data = s.memory + s.used;
      s.used += size;
      ++s.allocations;
      return data;
    }
  slab added;
  added.bytes = alone ? rounded_up(size, 4096) : slab_bytes;
  added.memory = static_cast<char*>(map_whole_pages(added.bytes));
  if (added.memory == nullptr) return nullptr;
  added.used = size;
  added.allocations = 1;
  slabs_.push_back(added);
  return added.memory;
}

bool host_slabs::give_back(const void* data) noexcept {
  const char* const at = static_cast<const char*>(data);
  const auto owner = std::find_if(slabs_.begin(), slabs_.end(), [&](const slab& s) {
    return at >= s.memory && at < s.memory + s.bytes;
  });
  if (owner == slabs_.end()) return false;
  if (--owner->allocations > 0) return true;
  munmap(owner->memory, owner->bytes);
  slabs_.erase(owner);
  return true;
}

void host_slabs::settle(clock::duration at_once) {
  stop_settling();
  std::vector<char*> pages;
  for (const slab& s : slabs_)
    for (std::size_t at = 0; at + huge_page_bytes <= s.used; at += huge_page_bytes)
      pages.push_back(s.memory + at);
  // The time that the first pages take gives an estimate for all pages.
  constexpr std::size_t trial = 8;
  const auto began = clock::now();
  std::size_t n_moved = 0;
  while (n_moved < pages.size()) {
    const auto all = (clock::now() - began) / std::max<std::size_t>(n_moved, 1) * pages.size();
    if ((n_moved >= trial || at_once == clock::duration::zero()) && all >= at_once) break;
    move_to_huge_page(pages[n_moved++]);
  }
  pages.erase(pages.begin(), pages.begin() + static_cast<std::ptrdiff_t>(n_moved));
  if (pages.empty()) return;
  stop_ = false;
  settling_ = std::thread([this, pages = std::move(pages)] {
    // Moving a page copies 2 MiB and blocks every thread that touches the page. Moves without
    // pauses would halve the speed of all token streams while they last, so after each move this
    // thread pauses for nine times as long as the move took.
    constexpr int rest_per_work = 9;
    for (char* page : pages) {
      const auto start = clock::now();
      move_to_huge_page(page);
      if (!rest(rest_per_work * (clock::now() - start))) return;
    }
  });
}

bool host_slabs::rest(clock::duration time) {
  std::unique_lock lock(mutex_);
  return !stopped_.wait_for(lock, time, [this] { return stop_; });
}

void host_slabs::stop_settling() {
  if (!settling_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_one();
  settling_.join();
}

} // namespace twill::gpu::detail
