// huge_pages: host memory from the system that begins at a huge-page boundary. Any thread may call
// the functions; munmap() frees the memory.
#pragma once

#include <cstddef>

namespace twill::gpu::detail {

inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

/// Zero-filled memory that is committed in small pages unless madvise() asks for huge ones; null
/// where the system refuses. `bytes` must be whole pages.
void* map_whole_pages(std::size_t bytes);

/// Zero-filled memory that the system commits in huge pages as far as they are available; null
/// where the system refuses. `bytes` may be any number.
void* map_huge_pages(std::size_t bytes);

} // namespace twill::gpu::detail
