// host_slabs: memory of a host build for data that is filled at once and then streamed: weights.
//
// They are read once per token, one small matrix after the other: on 4 KiB pages the processor
// walks page tables, and stops fetching ahead, at every page. So pieces below a few MiB share
// slabs, and settle() moves slabs to huge pages, in the background: clearing a huge page that the
// system hands out for the first time can take milliseconds, which would otherwise add up before
// the first token.
//
// Threads: one at a time, settle()'s own one apart. Pieces are zero-filled and 64-byte aligned. A
// slab's memory goes back to the system when its last piece does.
#pragma once

#include <cstddef>
#include <thread>
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
  /// False for memory that is not from here.
  bool give_back(const void* data) noexcept;
  /// Starts to move what is filled so far to huge pages; data stays where it is.
  void settle();

private:
  struct slab {
    char* memory = nullptr;
    std::size_t bytes = 0;
    std::size_t used = 0;   ///< bytes handed out, from the begin
    std::size_t pieces = 0; ///< of them still out
  };
  std::vector<slab> slabs_;
  std::thread settling_;
};

} // namespace twill::gpu::detail
