#include "gpu/detail/huge_pages.hpp"

#include <cstdint>

#include <sys/mman.h>

namespace twill::gpu::detail {

void* map_whole_pages(std::size_t bytes) {
  const std::size_t asked = bytes + huge_page_bytes;
  void* got = mmap(nullptr, asked, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) return nullptr;
  const auto at = reinterpret_cast<std::uintptr_t>(got);
  const std::size_t skip = rounded_up(at, huge_page_bytes) - at;
  char* const first = static_cast<char*>(got) + skip;
  if (skip > 0) munmap(got, skip);
  if (skip + bytes < asked) munmap(first + bytes, asked - skip - bytes);
  return first;
}

void* map_huge_pages(std::size_t bytes) {
  void* data = map_whole_pages(rounded_up(bytes, 4096));
#ifdef MADV_HUGEPAGE
  if (data != nullptr) madvise(data, bytes, MADV_HUGEPAGE);
#endif
  return data;
}

} // namespace twill::gpu::detail
