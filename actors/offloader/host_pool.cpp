#include "actors/offloader/host_pool.hpp"

#include <utility>

#include "models/offload/streams/disk_store.hpp"

namespace twill::actors {

models::result<std::shared_ptr<host_pool>> host_pool::create(std::int64_t block_bytes,
                                                             std::int32_t n_places) {
  std::shared_ptr<host_pool> pool(new host_pool);
  pool->stride_ = block_header_bytes + models::offload::store_aligned(block_bytes);
  pool->total_ = n_places;
  auto memory = gpu::host_buffer::allocate(static_cast<std::size_t>(pool->stride_) *
                                               static_cast<std::size_t>(n_places),
                                           "KV blocks in host memory");
  if (!memory.ok()) return models::failure{models::errc::out_of_memory, memory.detail()};
  pool->memory_ = std::move(memory).value();
  for (std::int32_t i = n_places; i-- > 0;)
    pool->free_.push_back(i);
  return pool;
}

host_block host_pool::take() {
  std::int32_t place = 0;
  {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return nullptr;
    place = free_.back();
    free_.pop_back();
  }
  unsigned char* bytes = memory_.data() + place * stride_ + block_header_bytes;
  return host_block(bytes, [pool = shared_from_this(), place](unsigned char*) {
    const std::lock_guard lock(pool->mutex_);
    // push_back() never allocates: the vector has held all places before
    pool->free_.push_back(place);
  });
}

std::int32_t host_pool::free() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int32_t>(free_.size());
}

} // namespace twill::actors
