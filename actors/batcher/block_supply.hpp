// block_supply: counts the KV blocks that the batcher may use: blocks granted to it, and blocks
// that the allocator could still grant.
//
// One thread at a time (the batcher's). The second number is that of the allocator's last answer,
// less the cached blocks that were reused since. It may be too low if sequences have given up
// blocks since that answer was requested.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "actors/scheduling/step_decision.hpp"
#include "config/base/assert.hpp"

namespace twill::actors {

class block_supply {
public:
  /// The allocator has `total` blocks from now on, and none is granted.
  void reset(std::int64_t total) {
    ready_.clear();
    given_up_ = given_up_before_request_ = false;
    total_ = not_granted_ = total;
  }
  /// The allocator has granted these blocks, and can grant `left` more.
  void add(std::span<const std::int32_t> granted, std::int64_t left) {
    given_up_before_request_ = false;
    ready_.insert(ready_.end(), granted.begin(), granted.end());
    not_granted_ = left;
  }
  /// Takes n granted blocks; the ones granted first come first.
  std::vector<std::int32_t> take(std::size_t n) {
    TWILL_ASSERT(n <= ready_.size(), "a plan takes blocks that are ready");
    const auto end = ready_.begin() + static_cast<std::ptrdiff_t>(n);
    std::vector<std::int32_t> taken(ready_.begin(), end);
    ready_.erase(ready_.begin(), end);
    return taken;
  }
  /// A sequence begins with cached blocks, of which `n` could have been granted before.
  void reuse(std::int64_t n) { not_granted_ = std::max<std::int64_t>(not_granted_ - n, 0); }

  /// A sequence has given up blocks. The allocator receives that change before the next request.
  void note_given_up() { given_up_ = true; }
  /// A block_request is being sent.
  void note_request() { given_up_before_request_ = std::exchange(given_up_, false); }

  std::int64_t ready() const { return static_cast<std::int64_t>(ready_.size()); }
  bool is_exact() const { return !given_up_ && !given_up_before_request_; }
  free_blocks free() const { return {not_granted_ + ready(), ready(), is_exact()}; }
  /// Too high while the number of free blocks is not exact.
  std::int64_t used() const { return total_ - not_granted_ - ready(); }

private:
  std::int64_t total_ = 0;
  std::int64_t not_granted_ = 0;
  std::deque<std::int32_t> ready_;
  bool given_up_ = false, given_up_before_request_ = false;
};

} // namespace twill::actors
