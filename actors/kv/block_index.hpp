// block_index: finds blocks by tag, which is a part of a hash, in a hash table with open
// addressing. Several blocks may have the same tag.
//
// An object has no side effects outside itself; one thread at a time may use it. The table is
// allocated for a number of blocks and never grows; it is at most half full. Probing is linear.
// There are no tombstones: an erased slot is filled with an entry from behind it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace twill::actors {

class block_index {
public:
  static constexpr std::int32_t none = -1;

  /// Removes everything; after that, at most `n_blocks` blocks may be inserted.
  void clear(std::size_t n_blocks) {
    slots_.assign(std::bit_ceil(2 * n_blocks + 2), {});
    size_ = 0;
  }
  std::size_t size() const { return size_; }

  static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash); }
  /// The first block with this tag for which `is_it` returns true, or `none`.
  template <class F>
  std::int32_t find(std::uint32_t tag, F&& is_it) const {
    for (std::size_t i = home(tag); slots_[i].block != none; i = next(i))
      if (slots_[i].tag == tag && is_it(slots_[i].block)) return slots_[i].block;
    return none;
  }
  void insert(std::uint32_t tag, std::int32_t block) {
    std::size_t i = home(tag);
    while (slots_[i].block != none)
      i = next(i);
    slots_[i] = {tag, block};
    ++size_;
  }
  /// Removes a block, which must be in the table under this tag.
  void erase(std::uint32_t tag, std::int32_t block) {
    std::size_t hole = home(tag);
    while (slots_[hole].block != block)
      hole = next(hole);
    for (std::size_t i = next(hole); slots_[i].block != none; i = next(i)) {
      // An entry moves into the hole unless its home slot lies behind the hole.
      if (distance(home(slots_[i].tag), i) < distance(hole, i)) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole] = {};
    --size_;
  }

private:
  struct slot {
    std::uint32_t tag = 0;
    std::int32_t block = none;
  };
  std::size_t home(std::uint32_t tag) const { return tag & (slots_.size() - 1); }
  std::size_t next(std::size_t i) const { return (i + 1) & (slots_.size() - 1); }
  std::size_t distance(std::size_t from, std::size_t to) const {
    return (to - from) & (slots_.size() - 1);
  }

  std::vector<slot> slots_;
  std::size_t size_ = 0;
};

} // namespace twill::actors
