// modelled_device: an executor for tests, with a model of the KV cache in the place of a device.
// For each position of a block, the model has a hash of the scope and of all tokens up to that
// position: what the keys and values there depend on. Before a row is computed, all earlier
// positions of its sequence must have the hashes that the tokens of the sequence require.
//
// A plan is carried out in the order of executor_actor: states are removed and opened, then blocks
// are copied, spilled and loaded, and then the rows are computed. A check that fails ends the test.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "actors/messages.hpp"
#include "tests/catch.hpp"

namespace twill::test {

class modelled_device {
public:
  using hash = std::uint64_t;
  /// What a row draws: a token, and whether it is an end id.
  struct draw {
    std::int32_t token = 0;
    bool stopped = false, no_allowed_token = false;
  };

  explicit modelled_device(std::int32_t block_tokens) : width_(block_tokens) {}

  /// The device has `n_blocks` blocks of unknown content, and no sequence has a state.
  void clear(std::int64_t n_blocks) {
    kv_.assign(static_cast<std::size_t>(n_blocks * width_), ~hash{0});
    states_.clear();
    departed_.clear();
  }
  void skip(const std::vector<actors::sequence_id>& ids) {
    departed_.insert(ids.begin(), ids.end());
  }

  template <class Draw>
  actors::step_result run(const actors::step_plan& plan, Draw&& draw) {
    update_states(plan);
    copy_blocks(plan);
    actors::step_result result;
    result.generation = plan.generation;
    result.number = plan.number;
    for (const actors::planned_row& row : plan.rows) {
      state& s = states_.at(row.id);
      if (s.finished || departed_.contains(row.id)) {
        result.skipped.push_back(row.id);
        continue;
      }
      compute(row, s);
      if (row.draws) add_draw(row.id, s, draw(s.tokens), result);
    }
    return result;
  }

private:
  struct state {
    actors::sequence_spec spec;
    std::vector<std::int32_t> tokens; ///< prompt and output
    std::vector<hash> hashes;         ///< hashes of the tokens up to each position
    std::vector<std::int32_t> blocks;
    bool finished = false;

    void add(std::int32_t token) {
      const hash before = hashes.empty() ? first_hash(spec.cache_scope) : hashes.back();
      tokens.push_back(token);
      hashes.push_back(after(before, token));
    }
  };

  static hash first_hash(std::uint64_t scope) { return scope * 977 + 5; }
  static hash after(hash before, std::int32_t token) {
    return (before ^ static_cast<hash>(token + 1)) * 0x9e3779b97f4a7c15ULL + (before >> 29);
  }
  hash& at(std::int32_t block, std::int32_t offset) {
    return kv_.at(static_cast<std::size_t>(block * width_ + offset));
  }
  hash& at(const state& s, std::int32_t position) {
    return at(s.blocks.at(static_cast<std::size_t>(position / width_)), position % width_);
  }

  void update_states(const actors::step_plan& plan) {
    for (const actors::sequence_id id : plan.closes) {
      states_.erase(id);
      const bool opens = std::any_of(plan.opens.begin(), plan.opens.end(),
                                     [id](const auto& o) { return o.id == id; });
      if (!opens) departed_.erase(id);
    }
    for (const actors::open_sequence& o : plan.opens) {
      if (states_.contains(o.id)) FAIL("a sequence is opened that is open");
      state& s = states_[o.id];
      s.spec = o.spec;
      for (const std::int32_t token : *o.spec.prompt)
        s.add(token);
      for (const std::int32_t token : o.output)
        s.add(token);
      s.blocks = o.blocks;
    }
    auto granted = plan.blocks.begin();
    for (const actors::lease_growth& g : plan.grows) {
      auto& blocks = states_.at(g.id).blocks;
      blocks.insert(blocks.end(), granted, granted + g.n_blocks);
      granted += g.n_blocks;
    }
  }

  void copy_blocks(const actors::step_plan& plan) {
    const auto bytes = static_cast<std::size_t>(width_) * sizeof(hash);
    for (const actors::block_copy& c : plan.copies)
      for (std::int32_t i = 0; i < width_; ++i)
        at(c.to, i) = at(c.from, i);
    for (const actors::block_spill& s : plan.spills) {
      check_spilled(s);
      std::memcpy(s.to.get(), &at(s.block, 0), bytes);
    }
    for (const actors::block_load& l : plan.loads)
      std::memcpy(&at(l.block, 0), l.from.get(), bytes);
  }

  /// A spilled block must have the content that its tokens require. That of its first position
  /// depends on its parent, which is known if that was spilled before, or if there is none.
  void check_spilled(const actors::block_spill& s) {
    const auto parent = ends_.find(s.identity.parent);
    bool right = true;
    if (s.identity.parent.second == 0)
      right = at(s.block, 0) == after(first_hash(s.identity.parent.first), s.identity.tokens[0]);
    else if (parent != ends_.end())
      right = at(s.block, 0) == after(parent->second, s.identity.tokens[0]);
    for (std::int32_t i = 1; i < width_; ++i)
      right = right && at(s.block, i) == after(at(s.block, i - 1),
                                               s.identity.tokens[static_cast<std::size_t>(i)]);
    if (!right) FAIL("block " << s.block << " was overwritten before it was spilled");
    ends_[s.identity.key] = at(s.block, width_ - 1);
  }

  void compute(const actors::planned_row& row, const state& s) {
    const std::int32_t end = row.first_position + row.n_tokens;
    const auto n_known = static_cast<std::int32_t>(s.tokens.size());
    if (row.n_tokens < 1 || end > n_known || row.draws != (end == n_known))
      FAIL("sequence " << row.id << " of " << n_known << " tokens computes up to " << end);
    for (std::int32_t p = 0; p < row.first_position; ++p)
      if (at(s, p) != s.hashes[static_cast<std::size_t>(p)])
        FAIL("sequence " << row.id << " reads other tokens at position " << p);
    for (std::int32_t p = row.first_position; p < end; ++p)
      at(s, p) = s.hashes[static_cast<std::size_t>(p)];
  }

  static void add_draw(actors::sequence_id id, state& s, const draw& what,
                       actors::step_result& result) {
    actors::drawn_token drawn;
    drawn.id = id;
    drawn.token = what.token;
    drawn.stopped = what.stopped;
    drawn.no_allowed_token = what.no_allowed_token;
    if (s.spec.is_pooled()) {
      drawn = {};
      drawn.id = id;
      drawn.first_top = static_cast<std::int32_t>(result.pooled.size());
      result.pooled.push_back(std::make_shared<const std::vector<float>>());
    }
    s.add(drawn.token);
    const auto most = s.spec.prompt->size() + static_cast<std::size_t>(s.spec.max_new);
    s.finished = drawn.stopped || drawn.no_allowed_token || s.tokens.size() >= most;
    result.drawn.push_back(drawn);
  }

  std::int32_t width_;
  std::vector<hash> kv_; // (n_blocks, block_tokens)
  std::map<actors::sequence_id, state> states_;
  std::set<actors::sequence_id> departed_; ///< sequences whose rows are skipped
  std::map<actors::block_key, hash> ends_; ///< the last hash of each block that was spilled
};

} // namespace twill::test
