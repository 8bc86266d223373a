// tiers_pair: kv_tiers (the index of the KV blocks in host memory and on disk) and its plain
// reference, with a simulated executor, offloader and disk. Every call goes to both, and answers,
// counters and host memory are compared. The memory of a block holds the block's key, so that bytes
// of a wrong block are detected too.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "actors/offloader/host_pool.hpp"
#include "actors/offloader/kv_tiers.hpp"
#include "tests/actors/kv/kv_sequences.hpp"
#include "tests/actors/offloader/tiers_twin.hpp"
#include "tests/support/operations.hpp"

namespace twill::test {

class tiers_pair {
public:
  /// The operation says how large the tiers are, and whether blocks are kept.
  tiers_pair(const operation& shape, std::int32_t width);

  actors::kv_tiers& tiers() { return tiers_; }
  tiers_twin& twin() { return twin_; }
  tiers_twin::time_point now() const { return now_; }
  void wait(const operation& o);
  /// From now on reads and writes succeed, fail at times, or mostly fail.
  void change_disk(const operation& o) { disk_health_ = o.a % 3; }

  /// Host memory for a block; null where the tiers have none.
  actors::host_block take_place();
  std::size_t n_free_places() const {
    return static_cast<std::size_t>(n_places_) - memory_in_use().size();
  }
  /// Copies the bytes of a block to its host memory. put_copied() then reports it to the tiers.
  void copy(const actors::block_identity& identity, actors::host_block to);
  void put_copied();

  void touch(const actors::block_key& key);
  void match(const actors::block_key& parent, const token_list& tokens);
  void fetch(const actors::block_key& key, const tiers_twin::reader& who);
  void freshen(const std::vector<actors::block_key>& prefix);
  void end_read(const operation& o);
  void end_write(const operation& o);
  /// Releases the blocks that readers have received and copied.
  void let_readers_go() { handed_.clear(); }
  /// The device is lost, and with it the copied blocks that were not put yet.
  void lose_device() { copied_.clear(); }
  void retire();

  void demand_equal_tiers() const;
  /// Ends every read and write and removes everybody who waits for a read. Then it checks that the
  /// only blocks that take host memory are those that the index lists there.
  void end();

  actors::block_identity identity_of(const written_text& text, std::size_t n) const;

private:
  static actors::kv_tiers::limits limits_of(const operation& shape, std::int32_t width);
  void take_writes(std::vector<actors::kv_tiers::write_order>& orders,
                   const std::vector<tiers_twin::write>& expected);
  std::set<tiers_twin::memory> memory_in_use() const;
  bool is_good(const operation& o) const;

  actors::kv_tiers::limits limits_;
  std::int32_t n_places_;
  std::shared_ptr<actors::host_pool> pool_;
  actors::kv_tiers tiers_;
  tiers_twin twin_;
  tiers_twin::time_point now_{std::chrono::hours(1)};
  std::uint32_t disk_health_ = 1;
  std::vector<actors::kv_tiers::spilled_block> copied_; ///< blocks that were not put yet
  std::vector<actors::kv_tiers::read_order> reads_;
  std::vector<actors::kv_tiers::write_order> writes_;
  std::vector<actors::host_block> handed_;
  std::map<std::int32_t, actors::block_key> disk_; ///< the whole block in each place, if any
};

} // namespace twill::test
