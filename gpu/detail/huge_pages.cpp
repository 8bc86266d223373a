#include "gpu/detail/huge_pages.hpp"

#include <cstdint>

#include <sys/mman.h>

namespace twill::gpu::detail {

void* map_whole_pages(std::size_t bytes) {
  const std::size_t asked = bytes + huge_page_bytes;
  void* mapping = mmap(nullptr, asked, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  const auto at = reinterpret_cast<std::uintptr_t>(mapping);
  const std::size_t skip = rounded_up(at, huge_page_bytes) - at;
  char* const first = static_cast<char*>(mapping) + skip;
  if (skip > 0) munmap(mapping, skip);
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
