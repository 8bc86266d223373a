#include "tests/actors/kv/pool_twin.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "actors/kv/block_key.hpp"
#include "tests/support/operations.hpp"

namespace twill::test {

using namespace actors;

namespace {

/// The first n tokens.
token_list first_of(const token_list& tokens, std::size_t n) {
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n)};
}

bool is_child(const whole_prefix& child, const whole_prefix& parent, std::size_t width) {
  return child.scope == parent.scope && child.tokens.size() == parent.tokens.size() + width &&
         first_of(child.tokens, parent.tokens.size()) == parent.tokens;
}

} // namespace

std::int32_t pool_twin::references(std::int32_t block) const {
  const whole_prefix* own = prefix_of(block);
  std::int32_t n = is_ahead(block) ? 1 : 0;
  for (const auto& [id, l] : leases_) {
    n += static_cast<std::int32_t>(std::count(l.blocks.begin(), l.blocks.end(), block));
    if (own != nullptr && l.tip == *own) ++n;
  }
  if (own == nullptr) return n;
  for (const auto& [prefix, child] : tree_)
    if (is_child(prefix, *own, width_) && references(child) > 0) ++n;
  return n;
}

const whole_prefix* pool_twin::prefix_of(std::int32_t block) const {
  for (const auto& [prefix, held] : tree_)
    if (held == block) return &prefix;
  return nullptr;
}

/// Updates the list of cached blocks after references have changed. Blocks that are now in use
/// leave the list. Blocks that are no longer in use enter it, children before their parents.
void pool_twin::settle() {
  std::erase_if(cached_, [&](std::int32_t block) { return references(block) > 0; });
  std::vector<std::pair<std::size_t, std::int32_t>> released;
  for (const auto& [prefix, block] : tree_)
    if (references(block) == 0 && std::count(cached_.begin(), cached_.end(), block) == 0)
      released.emplace_back(prefix.tokens.size(), block);
  std::sort(released.rbegin(), released.rend());
  for (const auto& [length, block] : released)
    cached_.push_back(block);
}

std::int64_t pool_twin::used() const {
  std::int64_t n = 0;
  for (std::int32_t block = 0; block < n_blocks_; ++block)
    if (!is_ahead(block) && references(block) > 0) ++n;
  return n;
}

void pool_twin::evict(std::int32_t block) {
  const whole_prefix gone = *prefix_of(block);
  for (const auto& [prefix, child] : tree_)
    demand(!is_child(prefix, gone, width_), "the twin evicts a block that has a child");
  if (is_named()) evicted_.push_back({block, identity(block)});
  tree_.erase(gone);
  std::erase(cached_, block);
}

void pool_twin::grant(std::int64_t n, block_list& out) {
  for (; n > 0; --n) {
    std::int32_t block = 0;
    const auto oldest = std::find_if(cached_.begin(), cached_.end(), [&](std::int32_t cached) {
      return !matched_.contains(*prefix_of(cached));
    });
    if (!free_.empty()) {
      block = free_.back();
      free_.pop_back();
    } else if (oldest != cached_.end()) {
      block = *oldest;
      evict(block);
    } else {
      return; // every cached block was matched
    }
    ahead_.insert(block);
    out.push_back(block);
  }
}

void pool_twin::give(sequence_id id, const block_list& granted) {
  lease& l = leases_[id];
  for (const std::int32_t block : granted) {
    demand(ahead_.erase(block) == 1, "a lease is given a block that was not granted");
    l.blocks.push_back(block);
  }
}

bool pool_twin::fork(sequence_id id, sequence_id from, std::int32_t n) {
  const auto source = leases_.find(from);
  if (source == leases_.end() || source->second.blocks.size() < static_cast<std::size_t>(n))
    return false;
  const block_list shared = first_of(source->second.blocks, static_cast<std::size_t>(n));
  leases_[id].blocks = shared;
  return true;
}

void pool_twin::drop(sequence_id id) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return;
  const block_list held = found->second.blocks;
  leases_.erase(found);
  // Blocks from the beginning of the lease are granted again first.
  for (auto block = held.rbegin(); block != held.rend(); ++block)
    if (!holds(*block) && references(*block) == 0) free_.push_back(*block);
  settle();
}

void pool_twin::reset(std::int32_t n_blocks) {
  if (n_blocks > 0) n_blocks_ = n_blocks;
  tree_.clear();
  leases_.clear();
  cached_.clear();
  free_.clear();
  ahead_.clear();
  matched_.clear();
  evicted_.clear();
  inserted_.clear();
  for (std::int32_t block = n_blocks_; block-- > 0;) // the lowest is granted first
    free_.push_back(block);
}

std::vector<prefix_match> pool_twin::look_up(const std::vector<prefix_query>& queries) {
  matched_.clear();
  std::vector<prefix_match> out;
  std::set<std::int32_t> counted; // evictable blocks that any query has counted
  for (const prefix_query& query : queries) {
    prefix_match match{query.id, {}, 0, {}};
    for (std::size_t n = width_; n <= query.tokens.size(); n += width_) {
      const auto found = tree_.find({query.scope, first_of(query.tokens, n)});
      if (found == tree_.end()) break;
      match.blocks.push_back(found->second);
      matched_.insert(found->first);
      if (references(found->second) == 0 && counted.insert(found->second).second)
        ++match.n_evictable;
    }
    out.push_back(match);
  }
  return out;
}

bool pool_twin::reuse(const lease_reuse& begin) {
  for (const std::int32_t block : begin.blocks)
    if (!holds(block)) return false;
  lease& l = leases_[begin.id];
  l.blocks = begin.blocks;
  l.n_inserted = begin.blocks.size();
  if (!begin.blocks.empty()) l.tip = *prefix_of(begin.blocks.back());
  settle();
  return true;
}

void pool_twin::insert(const prefix_insert& computed) {
  lease& l = leases_.at(computed.id);
  for (std::size_t at = 0; at < computed.tokens.size(); at += width_) {
    const std::int32_t own = l.blocks.at(l.n_inserted++);
    whole_prefix next = l.tip;
    next.scope = computed.scope;
    for (std::size_t i = at; i < at + width_; ++i)
      next.tokens.push_back(computed.tokens[i]);
    if (tree_.emplace(next, own).second && is_named()) inserted_.push_back(own);
    l.tip = next;
  }
  settle();
}

block_key pool_twin::name(const whole_prefix& of) const {
  block_key key = root_key(of.scope);
  for (std::size_t at = 0; at < of.tokens.size(); at += width_)
    key = key_after(*naming_, key, {of.tokens.data() + at, width_});
  return key;
}

block_identity pool_twin::identity(std::int32_t block) const {
  const whole_prefix& own = *prefix_of(block);
  const std::size_t before = own.tokens.size() - width_;
  return {name(own),
          name({own.scope, first_of(own.tokens, before)}),
          {own.tokens.begin() + static_cast<std::ptrdiff_t>(before), own.tokens.end()}};
}

whole_prefix pool_twin::end_of(const prefix_match& match, std::uint64_t scope) const {
  if (match.blocks.empty()) return {scope, {}};
  return *prefix_of(match.blocks.back());
}

std::string written(const block_list& blocks) {
  std::string text;
  for (const std::int32_t block : blocks)
    text += (text.empty() ? "" : " ") + std::to_string(block);
  return "[" + text + "]";
}

void demand_equal_identities(const block_identity& is, const block_identity& expected,
                             const std::string& what) {
  demand(is.tokens == expected.tokens,
         what + " has the tokens " + written(is.tokens) + ", expected " + written(expected.tokens));
  demand(is.key == expected.key, what + " has another name");
  demand(is.parent == expected.parent, what + " has a parent of another name");
}

void demand_equal_matches(const std::vector<prefix_match>& are,
                          const std::vector<prefix_match>& expected) {
  demand_equal(are.size(), expected.size(), "the number of matches");
  for (std::size_t i = 0; i < are.size(); ++i) {
    const std::string what = "match " + std::to_string(i);
    demand_equal(are[i].id, expected[i].id, "the sequence of " + what);
    demand(are[i].blocks == expected[i].blocks,
           what + " has " + written(are[i].blocks) + ", expected " + written(expected[i].blocks));
    demand_equal(are[i].n_evictable, expected[i].n_evictable, "n_evictable of " + what);
    demand_equal(are[i].kept, expected[i].kept, "whether the blocks are kept of " + what);
    demand(are[i].tier_keys == expected[i].tier_keys,
           what + " goes on in the tiers by " + std::to_string(are[i].tier_keys.size()) +
               " blocks, expected " + std::to_string(expected[i].tier_keys.size()));
  }
}

void demand_equal_pools(const block_pool& pool, const pool_twin& twin) {
  demand_equal(pool.total(), std::int64_t{twin.n_blocks()}, "total()");
  demand_equal(pool.free(), twin.free(), "free()");
  demand_equal(pool.cached(), twin.cached(), "cached()");
  demand_equal(pool.ahead(), twin.ahead(), "ahead()");
  demand_equal(pool.used(), twin.used(), "used()");
  demand_equal(pool.used() + pool.ahead() + pool.cached() + pool.free(), pool.total(),
               "used, granted, cached and free blocks");
  demand_equal(pool.available(), twin.free() + twin.cached(), "available()");
  demand_equal(pool.leases(), twin.leases().size(), "leases()");
  for (const auto& [id, l] : twin.leases())
    demand(pool.blocks(id) == l.blocks, "lease " + std::to_string(id) + " has " +
                                            written(pool.blocks(id)) + ", expected " +
                                            written(l.blocks));
  std::set<sequence_id> visited;
  pool.each_lease([&](sequence_id id, const block_list& blocks) {
    demand(visited.insert(id).second && twin.leases().contains(id) && blocks == pool.blocks(id),
           "each_lease() visits something else");
  });
  demand_equal(visited.size(), twin.leases().size(), "the leases that each_lease() visits");
  for (std::int32_t block = 0; block < twin.n_blocks(); ++block) {
    const std::string what = " of block " + std::to_string(block);
    demand_equal(pool.references(block), twin.references(block), "references()" + what);
    demand_equal(pool.holds(block), twin.holds(block), "holds()" + what);
    demand_equal(pool.is_cached(block), twin.is_cached(block), "is_cached()" + what);
    if (twin.is_named() && twin.holds(block))
      demand_equal_identities(pool.identity(block), twin.identity(block),
                              "block " + std::to_string(block));
  }
}

} // namespace twill::test
