// host_pool: host memory for KV blocks, divided into places of equal size. Each place begins with a
// page for the header that a block has on disk, so that header and bytes are written in one
// operation.
//
// Thread safety: any thread may take a place or release one. A place keeps the pool alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "actors/kv/spilled_block.hpp"
#include "gpu/copy_stream.hpp"
#include "models/errc.hpp"

namespace twill::actors {

inline constexpr std::int64_t block_header_bytes = 4096;

class host_pool : public std::enable_shared_from_this<host_pool> {
public:
  static models::result<std::shared_ptr<host_pool>> create(std::int64_t block_bytes,
                                                           std::int32_t n_places);
  /// A place, or null when all are taken.
  host_block take();

  std::int64_t stride() const { return stride_; } ///< bytes of a place, header included
  std::int32_t total() const { return total_; }
  std::int32_t free() const;

private:
  host_pool() = default;

  gpu::host_buffer memory_;
  std::int64_t stride_ = 0;
  std::int32_t total_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::int32_t> free_; ///< numbers of free places; the last one is taken next
};

} // namespace twill::actors
