// The two messages that the KV block allocator gets from the batcher, compared with references of
// the block pool and of the KV tiers (host memory and disk). apply_change() applies the parts of a
// kv_change in the order of its members, and gives leases blocks that were granted before.
// grant_blocks() answers a block_request. A lookup of a prefix matches blocks of the pool first,
// and goes on in the tiers where the pool has no more. Matched blocks stay in the pool until the
// next request, whatever changes come before it. Evicted blocks, and blocks that are kept across
// restarts, are copied to the tiers in the order of their positions in the prefix.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/kv/apply_change.hpp"
#include "actors/kv/grant_blocks.hpp"
#include "config/base/id_ranges.hpp"
#include "tests/actors/kv/kv_sequences.hpp"
#include "tests/actors/kv/lease_blocks.hpp"
#include "tests/actors/kv/pool_twin.hpp"
#include "tests/actors/offloader/tiers_pair.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

namespace {

using namespace twill::actors;
using namespace twill::test;

class allocator_and_twin {
public:
  /// The first operation says how large the pool is, the second how large the tiers are.
  allocator_and_twin(const operation& pool_shape, const operation& tiers_shape)
      : width_(1 + static_cast<std::int32_t>(pool_shape.b % 2)),
        tiers_(pool_shape.kind % 4 == 0 ? nullptr
                                        : std::make_unique<tiers_pair>(tiers_shape, width_)),
        pool_(size_of(pool_shape.a), width_, hash_of(pool_shape.c)),
        twin_(size_of(pool_shape.a), width_,
              tiers_ == nullptr ? std::nullopt : std::optional(naming_key)) {
    if (tiers_ != nullptr) pool_.name_blocks(tiers_->tiers().key());
  }

  /// Adds a part to the next change or a query to the next request, sends one of them, or lets time
  /// pass in the tiers.
  void apply(const operation& o, std::uint64_t number) {
    const std::uint32_t what = o.kind % 64;
    if (what < part_query)
      wanted_.push_back(o);
    else if (what < 34)
      queries_.push_back(o);
    else if (what < 40)
      change();
    else if (what < 46)
      ask(static_cast<std::int64_t>(o.b % 10) - 4, o.c % 2 == 0 ? 0 : o.a % 5);
    else if (what < 51)
      serve(o);
    else if (tiers_ != nullptr)
      move_blocks(o, number);
  }

  /// Ends every lease, read and write. After that, all blocks of the pool can be granted.
  void end() {
    wanted_.clear();
    for (const auto& [id, l] : twin_.leases())
      wanted_.push_back({part_drop, static_cast<std::uint32_t>(id), 0, 0});
    change();
    demand_equal(pool_.used(), std::int64_t{0}, "used() without a lease");
    demand_equal(pool_.ahead() + pool_.cached() + pool_.free(), pool_.total(),
                 "granted, cached and free blocks without a lease");
    queries_.clear();
    ask(pool_.available(), 0);
    demand_equal(static_cast<std::int64_t>(ahead_.size()), pool_.total(),
                 "the blocks that are granted without a lease");
    if (tiers_ != nullptr) tiers_->end();
  }

private:
  /// The kinds of operations that are parts of a change or of a request; each up to its number.
  enum part : std::uint32_t {
    part_reuse = 3,
    part_grow = 9,
    part_fork = 12,
    part_copy = 14,
    part_insert = 19,
    part_drop = 25,
    part_reset = 26,
    part_query = 27 ///< this number and all above it
  };
  /// All that a sequence asks for, from its query to the insertion of its blocks.
  void serve(const operation& o) {
    const std::uint32_t n_blocks = 1 + o.kind / 64 % 6;
    wanted_ = {{part_drop, o.a, 0, 0}};
    change();
    queries_ = {{part_query, 8 * n_blocks + o.a % 6, o.b, o.c}};
    const written_text text = text_of(queries_.back());
    ask(-static_cast<std::int64_t>(ahead_.size()), 0);
    const std::uint32_t lacking = n_blocks - static_cast<std::uint32_t>(matches_[0].blocks.size());
    const sequence_id id = id_of(o);
    // Other sequences leave and grow between the match and its use.
    for (std::uint32_t i = 0; i < o.kind / 1536 % 3; ++i) {
      wanted_ = {{part_drop, o.a + 1 + i, 0, 0}, {part_grow, o.a + 3 + i, o.c % 3, o.b}};
      change();
    }
    wanted_ = {{part_reuse, o.a, 0, 0}};
    for (std::uint32_t left = lacking; left > 0; left -= std::min(left, 3U))
      wanted_.push_back({part_grow, o.a, std::min(left, 3U), 0});
    change();
    texts_[id] = text;
    wanted_ = {{part_insert, o.a, lacking, 0}}; // fewer if the lease has fewer blocks
    change();
    if (tiers_ != nullptr && o.kind / 384 % 4 != 0) tiers_->put_copied();
  }

  static std::int32_t size_of(std::uint32_t number) {
    return 1 + static_cast<std::int32_t>(number % 9);
  }
  static sequence_id id_of(const operation& o) { return 1 + (o.a + 5) % 6; }
  bool is_unused(sequence_id id) const { return !twin_.leases().contains(id); }

  /// Calls act(operation) for the wanted parts of a kind.
  template <class F>
  void each(part kind, part before, F&& act) const {
    for (const operation& o : wanted_)
      if (o.kind % 64 <= kind && (o.kind % 64 > before || before == kind)) act(o);
  }

  /// Builds a kv_change (what the batcher says about leases in one message) from the collected
  /// parts, and applies it to the reference in the order of kv_change's members. Parts that the
  /// batcher would never send are removed from the change.
  void change() {
    kv_change change;
    each(part_reset, part_drop, [&](const operation& o) {
      if (o.b % 4 != 0) return; // reset the pool in one of four cases
      change.reset = true;
      change.n_blocks = o.a % 2 == 0 ? 0 : size_of(o.c);
    });
    if (change.reset) {
      twin_.reset(change.n_blocks);
      ahead_.clear();
      matches_.clear();
      if (tiers_ != nullptr) tiers_->lose_device();
    }
    each(part_insert, part_copy, [&](const operation& o) {
      const sequence_id id = id_of(o);
      if (is_unused(id)) return;
      const auto& l = twin_.leases().at(id);
      const std::size_t first = l.n_inserted;
      const std::size_t n = o.b % (l.blocks.size() - first + 1);
      const auto w = static_cast<std::size_t>(width_);
      change.prefix_inserts.push_back(
          {id, texts_[id].tokens(first * w, (first + n) * w), texts_[id].scope});
      twin_.insert(change.prefix_inserts.back());
    });
    each(part_drop, part_insert, [&](const operation& o) {
      change.drops.push_back(id_of(o)); // the id may be unknown
      twin_.drop(id_of(o));
    });
    each(part_reuse, part_reuse, [&](const operation& o) { add_reuse(o, change); });
    each(part_grow, part_reuse, [&](const operation& o) {
      const sequence_id id = id_of(o);
      if (is_unused(id)) texts_[id] = text_of(o);
      change.grows.push_back({id, give(id, o.b % 4, o.c, change)});
    });
    each(part_fork, part_grow, [&](const operation& o) {
      const sequence_id id = id_of(o), from = 1 + o.b % 6;
      const auto n = static_cast<std::int32_t>(o.c % 5);
      if (!is_unused(id) || !twin_.fork(id, from, n)) return;
      texts_[id] = texts_[from];
      change.forks.push_back({id, from, n});
    });
    each(part_copy, part_fork, [&](const operation& o) {
      const sequence_id id = id_of(o);
      if (is_unused(id) || give(id, 1, o.c, change) == 0) return;
      change.copies.push_back({id, id, 0});
    });
    wanted_.clear();
    apply_change(pool_, change);
    compare_pools();
  }

  /// Gives a lease up to n granted blocks, which need not be those granted first. Returns how many.
  std::int32_t give(sequence_id id, std::size_t n, std::size_t first, kv_change& change) {
    const block_list given = take_granted(ahead_, n, first);
    twin_.give(id, given);
    change.blocks.insert(change.blocks.end(), given.begin(), given.end());
    return static_cast<std::int32_t>(given.size());
  }

  /// Sends a block_request with the collected queries.
  void ask(std::int64_t n_ahead, std::int64_t n_more) {
    block_request request;
    request.n_ahead = n_ahead;
    request.n_more = n_more;
    asked_.clear();
    for (const operation& o : std::exchange(queries_, {})) {
      asked_.push_back(text_of(o));
      const std::uint32_t n_blocks = o.a / 8 % 7;
      // Some sequences need blocks behind those that are looked up, and some queries name no need.
      const std::uint32_t needed = o.c % 8 == 7 ? o.b % 9 : n_blocks;
      request.queries.push_back({o.a % 6, asked_.back().tokens(0, n_blocks * twin_.width()),
                                 asked_.back().scope, static_cast<std::int32_t>(needed)});
    }
    kv_grant expected;
    const std::size_t n_fitting = sequences_that_fit(request);
    const auto first = [&](std::size_t n) {
      return std::vector(request.queries.begin(),
                         request.queries.begin() + static_cast<std::ptrdiff_t>(n));
    };
    expected.matches = twin_.look_up(first(std::min(n_fitting + 1, request.queries.size())));
    if (expected.matches.size() > n_fitting) expected.matches.back().kept = false;
    const auto kept = twin_.look_up(first(n_fitting)); // the tree keeps only these blocks
    const std::int64_t n = n_granted(request, kept);
    twin_.grant(n, expected.blocks);
    demand_equal(static_cast<std::int64_t>(expected.blocks.size()), n,
                 "the number of blocks that the reference grants");
    if (tiers_ != nullptr) use_tiers(request, expected);
    expected.free_blocks = twin_.free() + twin_.cached();
    compare(grant_blocks(pool_, request, tiers_ == nullptr ? nullptr : &tiers_->tiers(),
                         tiers_ == nullptr ? steady_clock::time_point{} : tiers_->now()),
            expected);
    ahead_.insert(ahead_.end(), expected.blocks.begin(), expected.blocks.end());
    matches_ = std::move(expected.matches);
  }

  /// The blocks that the sequences of the first matches lack.
  static std::int64_t n_lacking(const block_request& request,
                                const std::vector<prefix_match>& matches) {
    std::int64_t n = 0;
    for (std::size_t i = 0; i < matches.size(); ++i) {
      const auto n_matched = static_cast<std::int32_t>(matches[i].blocks.size());
      n += std::max(request.queries[i].n_blocks - n_matched, 0);
    }
    return n;
  }
  /// How many blocks can be granted if those of the matches stay.
  std::int64_t n_grantable(const std::vector<prefix_match>& matches) const {
    std::set<std::int32_t> kept;
    for (const prefix_match& match : matches)
      for (const std::int32_t block : match.blocks)
        if (twin_.is_cached(block)) kept.insert(block);
    return twin_.free() + twin_.cached() - static_cast<std::int64_t>(kept.size());
  }
  /// For how many of the first sequences the blocks that they lack can be granted, beside n_ahead,
  /// and without the blocks that their queries match.
  std::size_t sequences_that_fit(const block_request& request) {
    for (std::size_t n = request.queries.size(); n > 0; --n) {
      const auto matches = twin_.look_up(
          {request.queries.begin(), request.queries.begin() + static_cast<std::ptrdiff_t>(n)});
      if (request.n_ahead + n_lacking(request, matches) <= n_grantable(matches)) return n;
    }
    return 0;
  }
  /// How many blocks the answer to a request has: n_ahead, those that the sequences lack that fit,
  /// and, if all of them fit, n_more.
  std::int64_t n_granted(const block_request& request,
                         const std::vector<prefix_match>& kept) const {
    const bool all_fit = kept.size() == request.queries.size();
    const std::int64_t n =
        request.n_ahead + n_lacking(request, kept) + (all_fit ? request.n_more : 0);
    return std::clamp(n, std::int64_t{0}, n_grantable(kept));
  }

  /// A lease begins with a match of the last answer. No change since then has evicted its blocks.
  void add_reuse(const operation& o, kv_change& change) {
    const sequence_id id = id_of(o);
    if (!is_unused(id) || matches_.empty()) return;
    const std::size_t which = o.b % matches_.size();
    if (!matches_[which].kept) return;
    for (std::size_t i = 0; i < matches_[which].blocks.size(); ++i) {
      const whole_prefix right{asked_[which].scope,
                               asked_[which].tokens(0, (i + 1) * twin_.width())};
      const whole_prefix* is = twin_.prefix_of(matches_[which].blocks[i]);
      demand(is != nullptr && *is == right, "a matched block has left the tree");
    }
    change.reuses.push_back({id, matches_[which].blocks});
    twin_.reuse(change.reuses.back());
    texts_[id] = asked_[which];
  }

  void use_tiers(const block_request& request, kv_grant& expected) {
    std::size_t n_free = tiers_->n_free_places();
    auto evicted = twin_.take_evicted(); // a child comes before its parent
    std::erase_if(evicted, [&](const auto& one) { return tiers_->twin().touch(one.identity.key); });
    std::reverse(evicted.begin(), evicted.end());
    spill(evicted, n_free, expected);
    std::vector<block_pool::named_block> kept;
    for (const std::int32_t block : twin_.take_inserted())
      if (tiers_->twin().keeps() && twin_.holds(block))
        kept.push_back({block, twin_.identity(block)});
    std::erase_if(kept, [&](const auto& one) { return tiers_->twin().touch(one.identity.key); });
    spill(kept, n_free, expected);
    for (std::size_t i = 0; i < expected.matches.size() && expected.matches[i].kept; ++i) {
      const prefix_query& query = request.queries[i];
      const std::size_t found = expected.matches[i].blocks.size() * twin_.width();
      expected.matches[i].tier_keys =
          tiers_->twin().match(twin_.name(twin_.end_of(expected.matches[i], query.scope)),
                               std::span(query.tokens).subspan(found), tiers_->now(), false);
    }
  }

  /// If there is no host memory for a block, the blocks behind it get none either.
  void spill(const std::vector<block_pool::named_block>& blocks, std::size_t& n_free,
             kv_grant& expected) {
    std::set<block_key> lost;
    for (const auto& [block, identity] : blocks) {
      const bool taken = tiers_->twin().is_open() && n_free > 0 && !lost.contains(identity.parent);
      tiers_->twin().note_take(taken);
      if (!taken) {
        lost.insert(identity.key);
        continue;
      }
      --n_free;
      expected.spills.push_back({block, identity, nullptr});
    }
  }

  void compare(kv_grant is, const kv_grant& expected) {
    demand(is.blocks == expected.blocks,
           "granted are " + written(is.blocks) + ", expected " + written(expected.blocks));
    demand_equal_matches(is.matches, expected.matches);
    demand_equal(is.free_blocks, expected.free_blocks, "free_blocks");
    demand_equal(is.spills.size(), expected.spills.size(), "the number of spills");
    for (std::size_t i = 0; i < is.spills.size(); ++i) {
      demand_equal(is.spills[i].block, expected.spills[i].block, "a spilled block");
      demand_equal_identities(is.spills[i].identity, expected.spills[i].identity,
                              "a spilled block");
      tiers_->copy(is.spills[i].identity, std::move(is.spills[i].to));
    }
    compare_pools();
  }

  void compare_pools() const {
    demand_equal_pools(pool_, twin_);
    if (tiers_ != nullptr) tiers_->demand_equal_tiers();
    compare_description();
  }

  void compare_description() const {
    const kv_leases is = describe(pool_);
    demand_equal(is.leases.size(), twin_.leases().size(), "the leases that are described");
    std::size_t i = 0;
    std::set<std::int32_t> held;
    for (const auto& [id, l] : twin_.leases()) { // in the order of their ids
      demand_equal(is.leases[i].id, id, "a lease that is described");
      demand_equal(is.leases[i].n_blocks, static_cast<std::int64_t>(l.blocks.size()), "n_blocks");
      demand(is.leases[i].blocks == twill::range_text(l.blocks), "other blocks are described");
      held.insert(l.blocks.begin(), l.blocks.end());
      ++i;
    }
    block_list cached, pinned_by_child;
    for (std::int32_t block = 0; block < twin_.n_blocks(); ++block) {
      if (twin_.is_cached(block)) cached.push_back(block);
      if (twin_.references(block) > 0 && !held.contains(block) && !twin_.is_ahead(block))
        pinned_by_child.push_back(block);
    }
    demand(is.snapshot.cached == twill::range_text(cached), "cached is " + is.snapshot.cached);
    demand(is.snapshot.pinned_by_child == twill::range_text(pinned_by_child),
           "tied is " + is.snapshot.pinned_by_child);
    demand_equal(is.snapshot.total_blocks, std::int64_t{twin_.n_blocks()}, "total_blocks");
    demand_equal(is.snapshot.used_blocks, twin_.used(), "used_blocks that are described");
    demand_equal(is.snapshot.free_blocks, twin_.free() + twin_.ahead(),
                 "free_blocks that are described");
  }

  /// Work of the executor, the offloader and the disk between two changes.
  void move_blocks(const operation& o, std::uint64_t number) {
    const std::uint32_t what = o.kind % 64;
    if (what < 53) {
      tiers_->put_copied();
    } else if (what < 56) {
      if (matches_.empty()) return;
      const prefix_match& match = matches_[o.a % matches_.size()];
      for (std::size_t i = 0; i < match.tier_keys.size(); ++i)
        tiers_->fetch(match.tier_keys[i], {number, i});
      tiers_->freshen(match.tier_keys);
    } else if (what < 58) {
      tiers_->end_read(o);
    } else if (what < 61) {
      tiers_->end_write(o);
    } else if (what < 62) {
      tiers_->let_readers_go();
    } else if (what < 63) {
      tiers_->wait(o);
    } else if (o.b % 16 == 0) {
      tiers_->retire();
    } else {
      tiers_->change_disk(o);
    }
    tiers_->demand_equal_tiers();
  }

  std::int32_t width_;
  std::unique_ptr<tiers_pair> tiers_; ///< null: blocks are kept on the device alone
  block_pool pool_;
  pool_twin twin_;
  operations wanted_;  ///< parts of the next change
  operations queries_; ///< the queries of the next request
  block_list ahead_;   ///< granted blocks that were not given to a lease yet
  std::map<sequence_id, written_text> texts_;
  std::vector<written_text> asked_;
  std::vector<prefix_match> matches_; ///< the matches of the last request
};

} // namespace

TEST_CASE("changes are applied in the order of their members, and requests are granted in theirs",
          "[actors][policy]") {
  CHECK(first_failure({10'000, 400'000, 120}, [](const operations& sequence) {
          if (sequence.size() < 2) return;
          allocator_and_twin both(sequence[0], sequence[1]);
          for (std::size_t i = 2; i < sequence.size(); ++i)
            both.apply(sequence[i], i);
          both.end();
        }) == "");
}
