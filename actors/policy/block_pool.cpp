#include "actors/policy/block_pool.hpp"

#include "config/base/assert.hpp"

namespace twill::actors {

block_pool::block_pool(std::int32_t n_blocks) : references_(static_cast<std::size_t>(n_blocks), 0) {
  reset();
}

void block_pool::reset() {
  leases_.clear();
  free_.clear();
  // Low ids first: on a host device pages are committed as they are touched, so an idle daemon
  // stays small.
  for (std::size_t i = references_.size(); i-- > 0;) {
    references_[i] = 0;
    free_.push_back(static_cast<std::int32_t>(i));
  }
}

bool block_pool::grow(sequence_id id, std::int32_t n, std::vector<std::int32_t>& out) {
  if (n > free()) return false;
  auto& lease = leases_[id];
  for (std::int32_t i = 0; i < n; ++i) {
    const std::int32_t block = free_.back();
    free_.pop_back();
    references_[static_cast<std::size_t>(block)] = 1;
    lease.push_back(block);
    out.push_back(block);
  }
  return true;
}

bool block_pool::fork(sequence_id id, sequence_id from, std::int32_t n) {
  const auto source = leases_.find(from);
  if (source == leases_.end() || source->second.size() < static_cast<std::size_t>(n)) return false;
  std::vector<std::int32_t> shared(source->second.begin(), source->second.begin() + n);
  for (std::int32_t block : shared)
    ++references_[static_cast<std::size_t>(block)];
  const bool fresh = leases_.emplace(id, std::move(shared)).second;
  TWILL_ASSERT(fresh, "a lease is forked before it holds blocks");
  return true;
}

void block_pool::drop(sequence_id id) {
  const auto lease = leases_.find(id);
  if (lease == leases_.end()) return;
  for (std::int32_t block : lease->second)
    if (--references_[static_cast<std::size_t>(block)] == 0) free_.push_back(block);
  leases_.erase(lease);
}

const std::vector<std::int32_t>& block_pool::blocks(sequence_id id) const {
  static const std::vector<std::int32_t> none;
  const auto lease = leases_.find(id);
  return lease == leases_.end() ? none : lease->second;
}

} // namespace twill::actors
