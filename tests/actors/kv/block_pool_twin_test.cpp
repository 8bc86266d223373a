// block_pool tracks which KV blocks each sequence has and which blocks keep a prefix for later use.
// Over random operations it is compared with a slow reference: every answer, and the whole visible
// state after each operation, must be equal.
#include <algorithm>
#include <map>
#include <vector>

#include "tests/actors/kv/kv_sequences.hpp"
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
    if (what < 6)
      admit(o);
    else if (what < 10)
      grow(id_of(o), static_cast<std::int32_t>(o.b % 4), {o.c, 0});
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

  /// Every lease ends: nothing is used, and what is cached can all be granted.
  void end() {
    while (!twin_.leases().empty())
      drop(twin_.leases().begin()->first);
    demand_equal_pools(pool_, twin_);
    demand_equal(pool_.used(), std::int64_t{0}, "used() without a lease");
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

  bool grow(sequence_id id, std::int32_t n, const written_text& text) {
    if (!twin_.leases().contains(id)) texts_[id] = text;
    block_list granted{-7}, expected{-7}; // grow() appends
    const bool is = pool_.grow(id, n, granted);
    demand_equal(is, twin_.grow(id, n, expected), "grow()");
    demand(granted == expected,
           "grow() grants " + written(granted) + ", expected " + written(expected));
    return is;
  }

  void fork(const operation& o) {
    const sequence_id id = unused_id();
    if (id == 0) return;
    const sequence_id from = id_of(o); // may be unknown, and is the id itself at times
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

  /// Several prompts at once, of which most begin alike.
  void look_up(const operation& o) {
    asked_.clear();
    std::vector<prefix_query> queries;
    for (std::uint32_t i = 0; i < o.a % 5; ++i) {
      asked_.push_back(text_of({0, o.a / 5 + (i % 2) * 5, o.b, o.c | 1U << i}));
      queries.push_back(query_of(asked_.back(), 10 + i, (o.b + i) % 6));
    }
    matches_ = ask(queries);
  }

  /// Begins a lease (the blocks of one sequence) with some blocks that an earlier lookup found in
  /// the prefix tree. These blocks may have left the tree since then. If the tree now holds one of
  /// these block ids under another prefix, the lookup's result must not be used.
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
    for (std::size_t i = 0; i < begin.blocks.size(); ++i) {
      if (begin.blocks[i] >= twin_.n_blocks()) return; // the pool has become smaller
      const whole_prefix right{text.scope, text.tokens(0, (i + 1) * twin_.width())};
      if (all_held && *twin_.prefix_of(begin.blocks[i]) != right) return;
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
      const auto lacking = static_cast<std::int32_t>(wanted - matches[i].blocks.size());
      if (grow(queries[i].id, lacking, texts[i]) && o.kind / 192 % 4 != 0)
        insert_blocks(queries[i].id, wanted - matches[i].blocks.size());
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

  /// Everything that is not used can be granted, and no more than that.
  void fill() {
    const sequence_id all = 77;
    const auto n = static_cast<std::int32_t>(pool_.available());
    demand(!grow(all, n + 1, {}), "more blocks are granted than there are");
    demand(grow(all, n, {}), "what is available is not granted");
    demand_equal_pools(pool_, twin_);
    drop(all);
  }

  void reset(const operation& o) {
    const std::int32_t n_blocks = o.a % 2 == 0 ? 0 : size_of(o.b);
    pool_.reset(n_blocks);
    twin_.reset(n_blocks);
  }

  block_pool pool_;
  pool_twin twin_;
  std::map<sequence_id, written_text> texts_;
  std::vector<written_text> asked_;
  std::vector<prefix_match> matches_; ///< of the last look_up()
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
