// huge_pages: host memory from the system that begins with a huge page. Any thread; munmap() gives
// it back.
#pragma once

#include <cstddef>

namespace twill::gpu::detail {

inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// Zero-filled, committed in small pages until somebody asks for huge ones; or null. `bytes` are
/// whole pages.
void* map_whole_pages(std::size_t bytes);

/// The same, committed huge page by huge page as far as the system has them; any number of bytes.
void* map_huge_pages(std::size_t bytes);

} // namespace twill::gpu::detail
