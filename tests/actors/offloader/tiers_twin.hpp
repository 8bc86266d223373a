// tiers_twin: a plain reference for kv_tiers, the index of evicted KV blocks in host memory and on
// disk. Each block has the time of its last use in host memory and on disk. The blocks in host
// memory and on disk are counted anew for every answer, and the block to evict is found by looking
// at all blocks.
//
// The reference stores only the address of a block's host memory, so it does not keep that memory
// in use. It does not predict to which of several free places on disk a block is written: it checks
// that the place is free, and takes the place from kv_tiers (place_writes()).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "actors/offloader/kv_tiers.hpp"

namespace twill::test {

class tiers_twin {
public:
  using time_point = actors::kv_tiers::time_point;
  using memory = const unsigned char*;
  using reader = std::pair<std::uint64_t, std::size_t>; ///< a fetch, and the index of its block

  struct block {
    actors::block_key parent;
    std::vector<std::int32_t> tokens;
    memory bytes = nullptr;
    std::uint64_t host_used = 0; ///< 0: host memory does not keep it
    std::uint64_t disk_used = 0; ///< 0: disk has no whole copy
    std::int32_t place = -1;     ///< the place on disk, also while the block is written there
    bool writing = false, reading = false;
    time_point read_since{};
    std::vector<reader> readers;
  };
  struct write {
    actors::block_key key;
    memory bytes = nullptr;
    std::int32_t place = -1; ///< -1: any free place
  };
  using spilled = std::pair<actors::block_identity, memory>;

  tiers_twin(const actors::kv_tiers::limits& l, std::int32_t n_host_places)
      : limits_(l), n_host_places_(n_host_places) {}

  void adopt(const std::vector<actors::kv_tiers::kept_block>& blocks, std::int32_t n_places);
  void lose_disk();
  void open() { open_ = true; }
  void retire() { open_ = false; }
  bool is_open() const { return open_; }
  bool keeps() const { return open_ && limits_.keep; }
  const actors::hash_key& key() const { return limits_.key; }

  bool touch(const actors::block_key& key);
  /// Reports whether host memory was found for a block that left the device.
  void note_take(bool taken);
  std::vector<actors::block_key> match(actors::block_key parent,
                                       std::span<const std::int32_t> tokens, time_point now,
                                       bool with_gaps) const;
  std::vector<write> put(const std::vector<spilled>& blocks, time_point now);
  void freshen(std::span<const actors::block_key> prefix);
  /// `to` is the memory that the tiers chose for a read, if the twin answers on_disk.
  actors::kv_tiers::whereabouts fetch(const actors::block_key& key, const reader& who,
                                      bool has_memory, time_point now);
  std::vector<reader> read_done(const actors::block_key& key, memory to, bool good, time_point now,
                                std::vector<write>& writes);
  void write_done(const actors::block_key& key, bool good, time_point now,
                  std::vector<write>& writes);
  /// Reports the places that the tiers chose for the writes that the twin expects.
  void place_writes(const std::vector<write>& expected,
                    const std::vector<actors::kv_tiers::write_order>& orders);

  const block* find(const actors::block_key& key) const;
  const std::map<actors::block_key, block>& blocks() const { return blocks_; }
  actors::tier_counts counted() const;
  /// The host memory of all blocks in the index.
  std::set<memory> host_memory() const;
  std::int32_t most_writing() const;

private:
  bool on_disk_works(time_point now) const;
  bool readable(const block& b, time_point now) const;
  std::int32_t n_host() const;
  std::int32_t n_writing() const;
  std::int32_t n_reading() const;
  void use(block& b);
  void use_path(std::span<const actors::block_key> prefix);
  void shrink(time_point now, std::vector<write>& writes);
  bool order_write(const actors::block_key& key, time_point now, std::vector<write>& writes);
  /// Returns -2 if no place is left.
  std::int32_t take_place(time_point now);
  void forget_if_nowhere(const actors::block_key& key);
  void fail(std::int32_t place, time_point now);

  actors::kv_tiers::limits limits_;
  std::int32_t n_host_places_;
  bool open_ = false;
  std::map<actors::block_key, block> blocks_;
  std::uint64_t time_ = 0; ///< counts uses; the last one has this number
  std::int32_t n_disk_places_ = 0;
  std::set<std::int32_t> free_, aside_;
  std::size_t n_free_taken_ = 0; ///< places of free_ for writes that place_writes() has yet to see
  std::vector<actors::block_key> unwritten_;
  time_point read_ended_at_{}, retry_aside_at_{}, disk_off_until_{};
  int failures_in_a_row_ = 0;
  actors::tier_counts counts_;
};

} // namespace twill::test
