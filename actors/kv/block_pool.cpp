#include "actors/kv/block_pool.hpp"

#include <utility>

#include "config/base/assert.hpp"

namespace twill::actors {

block_pool::block_pool(std::int32_t n_blocks, std::int32_t block_tokens,
                       prefix_tree::hash_function hash)
    : block_tokens_(block_tokens), blocks_(static_cast<std::size_t>(n_blocks)),
      tree_(n_blocks, block_tokens, hash) {
  reset();
}

void block_pool::reset(std::int32_t n_blocks) {
  leases_.clear();
  blocks_.assign(n_blocks > 0 ? static_cast<std::size_t>(n_blocks) : blocks_.size(), {});
  tree_.clear(static_cast<std::int32_t>(blocks_.size()));
  marks_.assign(blocks_.size(), 0);
  oldest_ = newest_ = nobody;
  n_cached_ = n_ahead_ = 0;
  evicted_.clear();
  inserted_.clear();
  free_.clear();
  // Low ids are granted first: on a host device, pages are committed when they are touched, so an
  // idle daemon stays small.
  for (std::size_t i = blocks_.size(); i-- > 0;)
    free_.push_back(static_cast<std::int32_t>(i));
}

/// Appends the block to the list of cached blocks.
void block_pool::cache(std::int32_t block) {
  block_state& b = at(block);
  b.before = newest_;
  b.after = nobody;
  (newest_ == nobody ? oldest_ : at(newest_).after) = block;
  newest_ = block;
  ++n_cached_;
}

void block_pool::uncache(std::int32_t block) {
  const block_state& b = at(block);
  (b.before == nobody ? oldest_ : at(b.before).after) = b.after;
  (b.after == nobody ? newest_ : at(b.after).before) = b.before;
  --n_cached_;
}

void block_pool::evict(std::int32_t block) {
  uncache(block);
  if (tree_.has_names()) evicted_.push_back({block, tree_.identity(block)});
  tree_.erase(block);
}

void block_pool::refer(std::int32_t block) {
  while (block != prefix_tree::root) {
    if (++at(block).references > 1 || !tree_.holds(block)) return;
    uncache(block);
    block = tree_.parent(block);
  }
}

void block_pool::release(std::int32_t block) {
  while (block != prefix_tree::root) {
    if (--at(block).references > 0) return;
    if (!tree_.holds(block)) {
      free_.push_back(block);
      return;
    }
    cache(block);
    block = tree_.parent(block);
  }
}

void block_pool::move_tip(lease& l, std::int32_t to) {
  refer(to);
  release(std::exchange(l.tip, to));
}

void block_pool::grant(std::int64_t n, std::vector<std::int32_t>& out) {
  const auto hand_out = [&](std::int32_t block) {
    at(block).references = 1;
    out.push_back(block);
    ++n_ahead_;
    --n;
  };
  while (n > 0 && !free_.empty()) {
    const std::int32_t block = free_.back();
    free_.pop_back();
    hand_out(block);
  }
  // A cached block stands in the list after its cached children, and all parents of a matched block
  // are matched. So the oldest block that was not matched has no child in the tree.
  for (std::int32_t block = oldest_; n > 0 && block != nobody;) {
    const std::int32_t next = at(block).after;
    if (mark_of(block) != n_look_ups_) {
      evict(block);
      hand_out(block);
    }
    block = next;
  }
}

void block_pool::give(sequence_id id, std::span<const std::int32_t> granted) {
  auto& blocks = leases_[id].blocks;
  blocks.insert(blocks.end(), granted.begin(), granted.end());
  n_ahead_ -= static_cast<std::int64_t>(granted.size());
  TWILL_ASSERT(n_ahead_ >= 0, "a sequence is given only blocks that were granted");
}

block_pool::lease& block_pool::begin_lease(sequence_id id) {
  TWILL_ASSERT(leases_.find(id) == nullptr, "a lease begins with what it shares or reuses");
  return leases_[id];
}

bool block_pool::fork(sequence_id id, sequence_id from, std::int32_t n) {
  const lease* source = leases_.find(from);
  if (source == nullptr || source->blocks.size() < static_cast<std::size_t>(n)) return false;
  lease& shared = begin_lease(id);
  shared.blocks.assign(source->blocks.begin(), source->blocks.begin() + n);
  for (std::int32_t block : shared.blocks)
    refer(block);
  return true;
}

void block_pool::drop(sequence_id id) {
  lease* l = leases_.find(id);
  if (l == nullptr) return;
  move_tip(*l, prefix_tree::root);
  for (auto block = l->blocks.rbegin(); block != l->blocks.rend(); ++block)
    release(*block);
  leases_.erase(id);
}

std::vector<std::int32_t> block_pool::find(const prefix_query& query) const {
  std::span<const std::int32_t> tokens = query.tokens;
  std::vector<std::int32_t> path;
  const auto width = static_cast<std::size_t>(block_tokens_);
  std::int32_t at = prefix_tree::root;
  for (; tokens.size() >= width; tokens = tokens.subspan(width)) {
    at = tree_.child(at, tokens.first(width), query.scope);
    if (at == prefix_tree::none) break;
    path.push_back(at);
  }
  return path;
}

void block_pool::look_up(std::span<const prefix_query> queries, std::vector<prefix_match>& out,
                         const std::function<bool(const prefix_match&)>& keep) {
  // The blocks of kept matches are marked with the number of this look-up. Used blocks are marked
  // too, because they may be released before the next grant().
  ++n_look_ups_;
  for (const prefix_query& query : queries) {
    prefix_match match{query.id, find(query), 0, {}};
    for (std::int32_t block : match.blocks)
      match.n_evictable += references(block) == 0 && mark_of(block) != n_look_ups_ ? 1 : 0;
    match.kept = !keep || keep(match);
    out.push_back(std::move(match));
    if (!out.back().kept) return;
    for (std::int32_t block : out.back().blocks)
      mark_of(block) = n_look_ups_;
  }
}

bool block_pool::reuse(const lease_reuse& begin) {
  for (std::int32_t block : begin.blocks)
    if (!tree_.holds(block)) return false;
  for (std::int32_t block : begin.blocks)
    refer(block);
  lease& l = begin_lease(begin.id);
  l.blocks = begin.blocks;
  l.n_inserted = begin.blocks.size();
  if (!begin.blocks.empty()) move_tip(l, begin.blocks.back());
  return true;
}

void block_pool::insert(const prefix_insert& computed) {
  lease& l = leases_.at(computed.id);
  const auto width = static_cast<std::size_t>(block_tokens_);
  std::span<const std::int32_t> tokens = computed.tokens;
  for (; tokens.size() >= width; tokens = tokens.subspan(width)) {
    TWILL_ASSERT(l.n_inserted < l.blocks.size(),
                 "a lease prefix_inserts only blocks that it holds");
    const std::int32_t own = l.blocks[l.n_inserted++];
    std::int32_t node = tree_.child(l.tip, tokens.first(width), computed.scope);
    if (node == prefix_tree::none) {
      tree_.insert(l.tip, tokens.first(width), own, computed.scope);
      refer(l.tip); // the reference from the used child `own`
      if (tree_.has_names()) inserted_.push_back(own);
      node = own;
    }
    move_tip(l, node);
  }
}

const std::vector<std::int32_t>& block_pool::blocks(sequence_id id) const {
  static const std::vector<std::int32_t> none;
  const lease* found = leases_.find(id);
  return found == nullptr ? none : found->blocks;
}

} // namespace twill::actors
