// block_pool: which KV block belongs to which lease. Accounting only, no memory.
//
// Pure, one thread at a time (the kv_allocator actor). A lease is an ordered list of blocks, named
// by its sequence. Invariants: used() + free() == total(); a block's reference count is the number
// of leases that hold it; a block is free exactly when that count is zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "actors/policy/planner.hpp"

namespace twill::actors {

class block_pool {
public:
  explicit block_pool(std::int32_t n_blocks);

  /// Appends n blocks to a lease (begun when unknown) and to `out`; all of them, or none and false.
  bool grow(sequence_id id, std::int32_t n, std::vector<std::int32_t>& out);
  /// Begins lease `id` with the first n blocks of `from`; false when `from` has not that many.
  bool fork(sequence_id id, sequence_id from, std::int32_t n);
  /// Ends a lease; blocks that no other lease holds are free again. Unknown ids are ignored.
  void drop(sequence_id id);
  void reset();

  std::int64_t total() const { return static_cast<std::int64_t>(references_.size()); }
  std::int64_t free() const { return static_cast<std::int64_t>(free_.size()); }
  std::int64_t used() const { return total() - free(); }
  std::size_t leases() const { return leases_.size(); }
  /// Blocks of a lease; empty when unknown.
  const std::vector<std::int32_t>& blocks(sequence_id id) const;
  std::int32_t references(std::int32_t block) const {
    return references_[static_cast<std::size_t>(block)];
  }

private:
  std::vector<std::int32_t> references_; // (n_blocks)
  std::vector<std::int32_t> free_;       ///< the last is taken next
  std::unordered_map<sequence_id, std::vector<std::int32_t>> leases_;
};

} // namespace twill::actors
