// host_slabs: device memory of a host build, out of large mappings on huge pages.
//
// Weights are streamed once per token, and one small matrix after the other: on 4 KiB pages of
// their own the processor would walk page tables, and stop fetching ahead, at every one. Pieces
// below a few MiB therefore share slabs; larger ones are mapped alone. A slab's memory goes back to
// the system when its last piece does. Pieces are zero-filled and 64-byte aligned. One thread at a
// time.
#pragma once

#include <cstddef>
#include <vector>

namespace twill::gpu::detail {

class host_slabs {
public:
  host_slabs() = default;
  host_slabs(const host_slabs&) = delete;
  host_slabs& operator=(const host_slabs&) = delete;
  ~host_slabs();

  /// Null when the system refuses.
  void* take(std::size_t bytes);
  /// `bytes` as they were taken.
  void give_back(void* data, std::size_t bytes) noexcept;

private:
  struct slab {
    char* memory = nullptr;
    std::size_t used = 0;   ///< bytes handed out, from the begin
    std::size_t pieces = 0; ///< of them still out
  };
  std::vector<slab> slabs_;
};

} // namespace twill::gpu::detail
