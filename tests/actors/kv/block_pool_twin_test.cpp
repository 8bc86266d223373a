// block_pool tracks which KV blocks each sequence has and which blocks keep a prefix for later use.
// Over random operations it is compared with a slow reference: every answer, and the whole visible
// state after each operation, must be equal.
#include <algorithm>
#include <map>
#include <vector>

#include "tests/actors/kv/kv_sequences.hpp"
#include "tests/actors/kv/lease_blocks.hpp"
#include "tests/actors/kv/pool_twin.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

namespace {

using namespace twill::actors;
using namespace twill::test;

class pool_and_twin {
public:
  /// The first operation says what kind of pool it is.
  explicit pool_and_twin(const operation& shape)
      : pool_(size_of(shape.a), 1 + static_cast<std::int32_t>(shape.b % 3), hash_of(shape.c)),
        twin_(size_of(shape.a), 1 + static_cast<std::int32_t>(shape.b % 3),
              shape.kind % 4 == 0 ? std::nullopt : std::optional(naming_key)) {
    if (twin_.is_named()) pool_.name_blocks(naming_key);
    demand_equal_pools(pool_, twin_);
  }

  void apply(const operation& o) {
    const std::uint32_t what = o.kind % 32;
    if (what < 5)
      admit(o);
    else if (what < 8)
      grant(o.b % 4 == 3 ? pool_.available() + 1 : static_cast<std::int64_t>(o.c % 5) - 1);
    else if (what < 11)
      give(id_of(o), o.b % 4, text_of({0, o.a / 6, o.b / 4, o.c}), o.kind / 32);
    else if (what < 13)
      fork(o);
    else if (what < 19)
      drop(id_of(o));
    else if (what < 21)
      look_up(o);
    else if (what < 23)
      reuse(o);
    else if (what < 29)
      insert(o);
    else if (what < 30)
      take_noted();
    else if (what < 31)
      fill();
    else
      reset(o);
    demand_equal_pools(pool_, twin_);
  }

  /// Drops every lease: no block is used, and all cached blocks can be granted.
  void end() {
    while (!twin_.leases().empty())
      drop(twin_.leases().begin()->first);
    demand_equal_pools(pool_, twin_);
    demand_equal(pool_.used(), std::int64_t{0}, "used() without a lease");
    demand_equal(pool_.ahead() + pool_.cached() + pool_.free(), pool_.total(),
                 "granted, cached and free blocks without a lease");
    demand_equal(pool_.cached(), static_cast<std::int64_t>(twin_.tree_size()),
                 "cached() without a lease");
    fill();
    demand_equal(pool_.free(), pool_.total(), "free() after all blocks were granted once");
    take_noted();
  }

private:
  static std::int32_t size_of(std::uint32_t number) {
    return 1 + static_cast<std::int32_t>(number % 12);
  }
  static sequence_id id_of(const operation& o) { return 1 + o.a % 6; }
  /// An id without a lease, or 0.
  sequence_id unused_id() const {
    for (sequence_id id = 1; id <= 6; ++id)
      if (!twin_.leases().contains(id)) return id;
    return 0;
  }

  /// Appends granted blocks to ahead_.
  void grant(std::int64_t n) {
    block_list granted{-7}, expected{-7}; // grant() appends
    pool_.grant(n, granted);
    twin_.grant(n, expected);
    demand(granted == expected,
           "grant() grants " + written(granted) + ", expected " + written(expected));
    ahead_.insert(ahead_.end(), granted.begin() + 1, granted.end());
  }

  /// Gives up to n of the granted blocks to a lease, which need not be those granted first.
  void give(sequence_id id, std::size_t n, const written_text& text, std::size_t first = 0) {
    if (!twin_.leases().contains(id)) texts_[id] = text;
    const block_list given = take_granted(ahead_, n, first);
    pool_.give(id, given);
    twin_.give(id, given);
  }

  /// Gives a lease blocks that were granted before, and new ones if those are too few. Gives all n
  /// blocks, or none and returns false.
  bool grow(sequence_id id, std::size_t n, const written_text& text) {
    if (n > ahead_.size()) grant(static_cast<std::int64_t>(n - ahead_.size()));
    if (n > ahead_.size()) return false;
    give(id, n, text);
    return true;
  }

  void fork(const operation& o) {
    const sequence_id id = unused_id();
    if (id == 0) return;
    const sequence_id from = id_of(o); // may be unknown, or equal to `id`
    const auto n = static_cast<std::int32_t>(o.b % 5);
    const bool is = pool_.fork(id, from, n);
    demand_equal(is, twin_.fork(id, from, n), "fork()");
    if (is) texts_[id] = texts_[from];
  }

  void drop(sequence_id id) {
    pool_.drop(id);
    twin_.drop(id);
    demand(pool_.blocks(id).empty(), "a lease that was dropped has blocks");
  }

  std::vector<prefix_match> ask(const std::vector<prefix_query>& queries) {
    are_last_ = false;
    std::vector<prefix_match> matches{{99, {1}, 1, {}}}; // look_up() appends
    auto expected = matches;
    pool_.look_up(queries, matches);
    for (const prefix_match& match : twin_.look_up(queries))
      expected.push_back(match);
    demand_equal_matches(matches, expected);
    matches.erase(matches.begin());
    for (std::size_t i = 0; i < matches.size() && twin_.is_named(); ++i)
      demand(pool_.name_of_end(matches[i], queries[i].scope) ==
                 twin_.name(twin_.end_of(matches[i], queries[i].scope)),
             "name_of_end() is another");
    return matches;
  }
  prefix_query query_of(const written_text& text, sequence_id id, std::uint32_t n_blocks) const {
    return {id, text.tokens(0, n_blocks * twin_.width()), text.scope};
  }

  /// Looks up several prompts at once, most of which begin with the same tokens.
  void look_up(const operation& o) {
    asked_.clear();
    std::vector<prefix_query> queries;
    for (std::uint32_t i = 0; i < o.a % 5; ++i) {
      asked_.push_back(text_of({0, o.a / 5 + (i % 2) * 5, o.b, o.c | 1U << i}));
      queries.push_back(query_of(asked_.back(), 10 + i, (o.b + i) % 6));
    }
    matches_ = ask(queries);
    are_last_ = true;
  }

  /// Begins a lease (the blocks of one sequence) with some blocks that an earlier lookup found in
  /// the prefix tree. If there was another lookup or a reset since then, these blocks may have left
  /// the tree. If the tree now holds one of these block ids under another prefix, the lookup's
  /// result must not be used.
  void reuse(const operation& o) {
    const sequence_id id = unused_id();
    if (id == 0 || matches_.empty()) return;
    const std::size_t which = o.a % matches_.size();
    const written_text& text = asked_[which];
    lease_reuse begin{id, matches_[which].blocks};
    begin.blocks.resize(begin.blocks.size() - o.b % (begin.blocks.size() + 1) / 2);
    bool all_held = true;
    for (const std::int32_t block : begin.blocks)
      all_held = all_held && block < twin_.n_blocks() && twin_.holds(block);
    demand(all_held || !are_last_, "a match of the last lookup left the tree");
    for (std::size_t i = 0; i < begin.blocks.size(); ++i) {
      if (begin.blocks[i] >= twin_.n_blocks()) return; // the pool has fewer blocks now
      const whole_prefix right{text.scope, text.tokens(0, (i + 1) * twin_.width())};
      if (!all_held || *twin_.prefix_of(begin.blocks[i]) == right) continue;
      demand(!are_last_, "a match of the last lookup is of another prefix");
      return;
    }
    const bool is = pool_.reuse(begin);
    demand_equal(is, twin_.reuse(begin), "reuse()");
    if (is) texts_[id] = text;
  }

  /// Does what the batcher does: begins leases (the blocks of sequences) with the cached blocks
  /// that lookups found, in the order of the lookups, and checks that each lowers the number of
  /// available blocks by the n_evictable of its lookup. Then the leases get the blocks that they
  /// lack, and most of them end at once.
  void admit(const operation& o) {
    std::vector<prefix_query> queries;
    std::vector<written_text> texts;
    const std::uint32_t n = 1 + o.a % 3;
    for (std::uint32_t i = 0; i < n; ++i) {
      const sequence_id id = 1 + (o.kind / 32 + i) % 6;
      drop(id);
      texts.push_back(text_of({0, o.a / 3, o.b >> i, o.c}));
      queries.push_back(query_of(texts.back(), id, 1 + (o.b >> i) % 5));
    }
    const auto matches = ask(queries);
    std::int64_t available = pool_.available();
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const lease_reuse begin{queries[i].id, matches[i].blocks};
      demand(pool_.reuse(begin), "a match was not reused at once");
      twin_.reuse(begin);
      texts_[begin.id] = texts[i];
      available -= matches[i].n_evictable;
      demand_equal(pool_.available(), available, "available() after a match was reused");
    }
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const std::size_t wanted = queries[i].tokens.size() / twin_.width();
      const std::size_t lacking = wanted - matches[i].blocks.size();
      if (grow(queries[i].id, lacking, texts[i]) && o.kind / 192 % 4 != 0)
        insert_blocks(queries[i].id, lacking);
    }
    for (const prefix_query& query : queries)
      if (o.kind / 768 % 4 != 0) drop(query.id);
  }

  void insert(const operation& o) {
    const sequence_id id = id_of(o);
    const auto found = twin_.leases().find(id);
    if (found == twin_.leases().end()) return;
    insert_blocks(id, o.b % (found->second.blocks.size() - found->second.n_inserted + 1));
  }
  void insert_blocks(sequence_id id, std::size_t n) {
    const std::size_t first = twin_.leases().at(id).n_inserted;
    const written_text& text = texts_.at(id);
    const prefix_insert computed{
        id, text.tokens(first * twin_.width(), (first + n) * twin_.width()), text.scope};
    pool_.insert(computed);
    twin_.insert(computed);
  }

  void take_noted() {
    const auto evicted = pool_.take_evicted(), expected = twin_.take_evicted();
    demand_equal(evicted.size(), expected.size(), "the number of evicted blocks");
    for (std::size_t i = 0; i < evicted.size(); ++i) {
      demand_equal(evicted[i].block, expected[i].block, "an evicted block");
      demand_equal_identities(evicted[i].identity, expected[i].identity, "an evicted block");
    }
    const auto inserted = pool_.take_inserted(), expected_inserted = twin_.take_inserted();
    demand(inserted == expected_inserted,
           "take_inserted() has " + written(inserted) + ", expected " + written(expected_inserted));
  }

  /// After a lookup that matches nothing, everything that is not used can be granted, and no more
  /// than that. All granted blocks are given to one lease, which ends.
  void fill() {
    const sequence_id all = 77;
    ask({});
    const std::int64_t not_used = pool_.total() - pool_.used();
    grant(pool_.available() + 1);
    demand_equal(pool_.available(), std::int64_t{0}, "available() after all was granted");
    demand_equal(pool_.ahead(), not_used, "ahead() after all was granted");
    demand_equal_pools(pool_, twin_);
    give(all, ahead_.size(), {});
    demand_equal(pool_.ahead(), std::int64_t{0}, "ahead() after all was given");
    demand_equal_pools(pool_, twin_);
    drop(all);
  }

  void reset(const operation& o) {
    const std::int32_t n_blocks = o.a % 2 == 0 ? 0 : size_of(o.b);
    pool_.reset(n_blocks);
    twin_.reset(n_blocks);
    ahead_.clear();
    are_last_ = false;
  }

  block_pool pool_;
  pool_twin twin_;
  block_list ahead_; ///< granted blocks that were not given to a lease yet
  std::map<sequence_id, written_text> texts_;
  std::vector<written_text> asked_;
  std::vector<prefix_match> matches_; ///< the matches of this object's last call of look_up()
  bool are_last_ = false;             ///< no later look-up was made, and the pool was not reset
};

} // namespace

TEST_CASE("a pool of blocks answers as its twin does, which counts everything anew",
          "[actors][policy]") {
  CHECK(first_failure({6'000, 400'000, 120}, [](const operations& sequence) {
          if (sequence.empty()) return;
          pool_and_twin both(sequence.front());
          for (std::size_t i = 1; i < sequence.size(); ++i)
            both.apply(sequence[i]);
          both.end();
        }) == "");
}
