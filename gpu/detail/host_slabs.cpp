#include "gpu/detail/host_slabs.hpp"

#include <algorithm>
#include <cstdint>

#include <sys/mman.h>

namespace twill::gpu::detail {

namespace {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
constexpr std::size_t slab_bytes = 16 * huge_page_bytes;
/// Larger pieces are mapped alone: the huge pages at their ends are lost on them, not much else.
constexpr std::size_t most_shared = 2 * huge_page_bytes;

std::size_t aligned(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

/// A mapping of whole pages that begins at a multiple of `alignment` (a power of two), or null.
char* map(std::size_t bytes, std::size_t alignment) {
  const std::size_t asked = bytes + alignment;
  void* got = mmap(nullptr, asked, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) return nullptr;
  char* const first = static_cast<char*>(got);
  const std::size_t skip =
      (alignment - reinterpret_cast<std::uintptr_t>(got) % alignment) % alignment;
  if (skip > 0) munmap(first, skip);
  munmap(first + skip + bytes, asked - skip - bytes);
#ifdef MADV_HUGEPAGE
  madvise(first + skip, bytes, MADV_HUGEPAGE);
#endif
  return first + skip;
}

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + 4095) / 4096 * 4096;
}

} // namespace

host_slabs::~host_slabs() {
  for (const slab& s : slabs_)
    munmap(s.memory, slab_bytes);
}

void* host_slabs::take(std::size_t bytes) {
  if (bytes > most_shared) return map(whole_pages(bytes), huge_page_bytes);
  const std::size_t size = aligned(bytes);
  for (slab& s : slabs_)
    if (s.used + size <= slab_bytes) {
      void* piece = s.memory + s.used;
      s.used += size;
      ++s.pieces;
      return piece;
    }
  slab made;
  made.memory = map(slab_bytes, huge_page_bytes);
  if (made.memory == nullptr) return nullptr;
  made.used = size;
  made.pieces = 1;
  slabs_.push_back(made);
  return made.memory;
}

void host_slabs::give_back(void* data, std::size_t bytes) noexcept {
  if (bytes > most_shared) {
    munmap(data, whole_pages(bytes));
    return;
  }
  const char* const at = static_cast<const char*>(data);
  const auto owner = std::find_if(slabs_.begin(), slabs_.end(), [&](const slab& s) {
    return at >= s.memory && at < s.memory + slab_bytes;
  });
  if (owner == slabs_.end() || --owner->pieces > 0) return;
  munmap(owner->memory, slab_bytes);
  slabs_.erase(owner);
}

} // namespace twill::gpu::detail
