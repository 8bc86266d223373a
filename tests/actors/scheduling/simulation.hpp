// A scheduler and a block pool together, with and without cached prefixes, driven by random
// operations as the batcher drives them: two plans are outstanding, results come back later, and
// sequences end or are cancelled, paused and resumed. Every operation checks the invariants of
// both, and compares every answer of the scheduler with that of its plain reference.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "actors/kv/block_pool.hpp"
#include "actors/scheduling/fair_policy.hpp"
#include "actors/scheduling/scheduler.hpp"
#include "tests/actors/kv/lease_blocks.hpp"
#include "tests/actors/scheduling/compared_scheduler.hpp"
#include "tests/actors/scheduling/plain_fair_policy.hpp"
#include "tests/catch.hpp"

namespace scheduling_tests {

using namespace twill::actors;

/// A policy that ranks each sequence by a function of its properties at arrival.
class ranked_policy final : public admission_policy {
public:
  using function = std::int64_t (*)(const new_sequence&);
  explicit ranked_policy(function rank) : rank_(rank) {}
  std::int64_t rank_of(const new_sequence& arrived) override { return rank_(arrived); }

private:
  function rank_;
};

inline std::int64_t all_equal(const new_sequence&) {
  return 0;
}

struct sim_sequence {
  std::int32_t prompt = 0;
  std::int32_t max_new = 0;
  std::int32_t ends_at = 0; ///< output tokens after which an end id is drawn
  std::int32_t output = 0;
  bool left = false; ///< the scheduler was asked to remove it
  bool paused = false;
  bool open = false;       ///< the executor's view
  bool finished = false;   ///< an end id or the last token was drawn
  std::int32_t stored = 0; ///< positions in KV, the executor's view
  std::int32_t n_inserted = 0;
  std::vector<std::int32_t> blocks;
  std::vector<std::int32_t> tokens; ///< all tokens that the sequence can ever have
  priority_key key;
  bool ever_paused = false;
  std::int32_t steps_as_first = 0; ///< completed steps in which this was the sequence served first
};

struct sim_plan {
  std::vector<planned_row> rows;
  std::vector<std::pair<std::int32_t, std::int32_t>> copies; ///< of blocks, before the rows
  std::map<sequence_id, std::vector<std::int32_t>> tables;
};

class simulation {
public:
  /// `rank`: null for the scheduler's own policy, first come first served.
  simulation(std::uint64_t seed, plan_limits limits, std::int32_t n_blocks,
             ranked_policy::function rank = nullptr, bool fair = false)
      : rng_(seed), limits_(limits), rank_(rank != nullptr ? rank : all_equal), fair_(fair),
        scheduler_(limits, fair ? policy(std::make_unique<fair_policy>()) : ranked(),
                   fair ? policy(std::make_unique<plain_fair_policy>()) : ranked()),
        pool_(n_blocks, limits.block_tokens),
        kv_(static_cast<std::size_t>(n_blocks * limits.block_tokens), -1) {}

  std::int32_t pick(std::int32_t low, std::int32_t high) {
    return std::uniform_int_distribution<std::int32_t>(low, high)(rng_);
  }

  void arrive() {
    const std::int32_t capacity = static_cast<std::int32_t>(pool_.total()) * limits_.block_tokens;
    const std::int32_t prompt = pick(1, std::max(1, capacity * 2 / 3));
    const std::int32_t max_new = pick(1, capacity - prompt + 1);
    const std::int32_t n = pick(0, 3) == 0 ? pick(2, 4) : 1;
    const sequence_id leader = next_id_;
    const auto client = static_cast<std::uint64_t>(fair_ ? pick(1, 3) : 0);
    const std::int32_t priority = fair_ ? std::max(pick(-6, 2), 0) : 0;
    const auto tokens = any_tokens(prompt + max_new);
    for (std::int32_t i = 0; i < n; ++i) {
      const sequence_id id = next_id_++;
      sim_sequence s;
      s.prompt = prompt;
      s.max_new = max_new;
      s.ends_at = pick(1, max_new + 5);
      // An earlier run has drawn some of its output.
      if (pick(0, 2) == 0) s.output = pick(0, std::min(s.ends_at, max_new) - 1);
      s.tokens = tokens;
      for (std::int32_t p = prompt; p < prompt + max_new; ++p)
        if (pick(0, 9) == 0) s.tokens[static_cast<std::size_t>(p)] += 1;
      new_sequence arrived{id, i == 0 ? 0 : leader, prompt, max_new};
      arrived.made = s.output;
      arrived.client = client;
      if (fair_) {
        arrived.weight = static_cast<std::int32_t>(client);
        arrived.most_running = client == limited_client ? limited_most : 0;
        arrived.priority = priority;
      }
      s.key = {rank_(arrived), id};
      all_[id] = s;
      group_[leader].push_back(id);
      scheduler_.add(arrived);
    }
  }

  void cancel_one() {
    if (group_.empty()) return;
    auto g = std::next(group_.begin(), pick(0, static_cast<std::int32_t>(group_.size()) - 1));
    for (sequence_id id : g->second)
      leave(id);
    group_.erase(g);
    settle();
  }

  void pause_one(bool pause) {
    if (all_.empty()) return;
    auto s = std::next(all_.begin(), pick(0, static_cast<std::int32_t>(all_.size()) - 1));
    s->second.paused = pause;
    s->second.ever_paused = s->second.ever_paused || pause;
    pause ? scheduler_.pause(s->first) : scheduler_.resume(s->first);
  }

  void resume_all() {
    for (auto& [id, s] : all_) {
      s.paused = false;
      scheduler_.resume(id);
    }
  }

  /// Plans until a step is sent, which returns true, or until there is nothing to send.
  bool pump() {
    for (int round = 0; round < 64; ++round) {
      settle();
      if (outstanding_.size() >= 2) return false;
      step_decision d;
      const auto matches = look_up();
      std::vector<prefix_hit> hits;
      for (const prefix_match& m : matches)
        hits.push_back({m.id, static_cast<std::int32_t>(m.blocks.size()), m.n_evictable});
      scheduler_.plan(pool_.available(), d, hits);
      reuse(d, matches);
      apply(d);
      preemptions += static_cast<std::uint64_t>(d.preempted);
      if (!d.rows.empty()) {
        send(d);
        return true;
      }
      if (!scheduler_.has_released()) return false;
    }
    FAIL("planning does not come to rest");
    return false;
  }

  /// The result of the oldest step in flight arrives.
  void step_back() {
    if (outstanding_.empty()) return;
    const sim_plan plan = outstanding_.front();
    outstanding_.pop_front();
    ++steps;
    note_first();
    const auto width = static_cast<std::ptrdiff_t>(limits_.block_tokens);
    for (const auto& [from, to] : plan.copies) {
      REQUIRE(to != from);
      std::copy_n(kv_.begin() + from * width, width, kv_.begin() + to * width);
    }
    copied += plan.copies.size();
    for (const planned_row& row : plan.rows) {
      sim_sequence& s = all_.at(row.id);
      bool drew = false;
      if (!s.finished) {
        REQUIRE(s.open);
        REQUIRE(row.first_position <= s.stored);
        compute(row, s, plan.tables.at(row.id));
        s.stored = std::max(s.stored, row.first_position + row.n_tokens);
        REQUIRE(static_cast<std::size_t>(s.stored) <=
                plan.tables.at(row.id).size() * static_cast<std::size_t>(limits_.block_tokens));
        drew = row.draws;
        if (drew) {
          REQUIRE(s.stored == s.prompt + s.output); // never draws before all its tokens are
                                                    // computed
          for (std::int32_t p = 0; p < s.stored; ++p)
            REQUIRE(at(plan.tables.at(row.id), p) == s.tokens[static_cast<std::size_t>(p)]);
          ++s.output;
          s.finished = s.output == s.ends_at || s.output == s.max_new;
        }
      }
      const bool over = s.finished;
      scheduler_.row_done(row.id, row.draws, drew);
      if (over) leave(row.id);
    }
    settle();
  }

  void lose_device() {
    outstanding_.clear();
    due_copies_.clear();
    later_copies_.clear();
    pool_.reset();
    std::fill(kv_.begin(), kv_.end(), -1);
    scheduler_.forget_device();
    for (auto& [id, s] : all_) {
      s.open = false;
      s.stored = s.n_inserted = s.steps_as_first = 0;
      s.blocks.clear();
    }
    settle();
  }

  bool idle() const { return all_.empty(); }
  std::size_t n_outstanding() const { return outstanding_.size(); }
  const block_pool& pool() const { return pool_; }

  std::uint64_t steps = 0, preemptions = 0, finished = 0, hits = 0, copied = 0;

private:
  using policy = std::unique_ptr<admission_policy>;
  policy ranked() const {
    if (rank_ == all_equal) return std::make_unique<fcfs_policy>();
    return std::make_unique<ranked_policy>(rank_);
  }

  /// Under the fair policy this client has a limit of its own.
  static constexpr std::uint64_t limited_client = 3;
  static constexpr std::int32_t limited_most = 2;

  /// Counts the steps for which a sequence is the oldest one under first come, first served, and
  /// checks that they are not too many. Each step computes at least one token of the oldest
  /// sequence, with one exception: when another sequence is preempted to make room for the oldest
  /// one, two steps may compute none of its tokens. This can happen once for each of its blocks.
  void note_first() {
    if (fair_ || rank_ != all_equal) return; // later arrivals may overtake it
    sim_sequence* first = nullptr;
    for (auto& [id, s] : all_)
      if (!s.left && (first == nullptr || s.key < first->key)) first = &s;
    if (first == nullptr || first->ever_paused) return;
    const std::int32_t length = first->prompt + first->max_new;
    const std::int32_t blocks = length / limits_.block_tokens + 1;
    first->steps_as_first += 1;
    REQUIRE(first->steps_as_first <= length + first->max_new + 3 * blocks + 6);
  }

  /// Random tokens that often share a beginning with those of other sequences: each token comes
  /// from one of three fixed lists, and now and then the next tokens come from another list.
  std::vector<std::int32_t> any_tokens(std::int32_t n) {
    std::vector<std::int32_t> tokens;
    std::int32_t stem = pick(0, 2);
    for (std::int32_t p = 0; p < n; ++p) {
      if (pick(0, 39) == 0) stem = pick(0, 2);
      tokens.push_back(100 * stem + p);
    }
    return tokens;
  }

  std::int32_t& at(const std::vector<std::int32_t>& table, std::int32_t position) {
    const std::int32_t block = table.at(static_cast<std::size_t>(position / limits_.block_tokens));
    return kv_[static_cast<std::size_t>(block * limits_.block_tokens +
                                        position % limits_.block_tokens)];
  }

  /// A finished step's row; its full blocks are inserted into the tree, as the batcher does.
  void compute(const planned_row& row, sim_sequence& s, const std::vector<std::int32_t>& table) {
    const std::int32_t width = limits_.block_tokens;
    const std::int32_t end = row.first_position + row.n_tokens;
    for (std::int32_t p = row.first_position; p < end; ++p) {
      REQUIRE_FALSE(pool_.is_cached(table.at(static_cast<std::size_t>(p / width))));
      at(table, p) = s.tokens[static_cast<std::size_t>(p)];
    }
    if (!limits_.prefix_cache || end / width <= s.n_inserted) return;
    const auto first = s.tokens.begin();
    pool_.insert({row.id, {first + s.n_inserted * width, first + end / width * width}});
    s.n_inserted = end / width;
  }

  std::vector<prefix_match> look_up() {
    std::vector<sequence_id> ids;
    scheduler_.candidates(ids);
    std::vector<prefix_query> queries;
    for (sequence_id id : ids) {
      const sim_sequence& s = all_.at(id);
      REQUIRE(s.blocks.empty());
      const std::int32_t n = (s.prompt + s.output - 1) / limits_.block_tokens;
      queries.push_back({id, {s.tokens.begin(), s.tokens.begin() + n * limits_.block_tokens}});
    }
    std::vector<prefix_match> matches;
    pool_.look_up(queries, matches);
    return matches;
  }

  void reuse(const step_decision& d, const std::vector<prefix_match>& matches) {
    for (const prefix_match& m : matches) {
      if (std::find(d.reuses.begin(), d.reuses.end(), m.id) == d.reuses.end()) continue;
      REQUIRE(pool_.reuse({m.id, m.blocks}));
      sim_sequence& s = all_.at(m.id);
      s.blocks = m.blocks;
      s.n_inserted = static_cast<std::int32_t>(m.blocks.size());
      s.stored = s.n_inserted * limits_.block_tokens;
      ++hits;
    }
  }

  void leave(sequence_id id) {
    if (auto s = all_.find(id); s != all_.end()) s->second.left = true;
    scheduler_.leave(id);
  }

  void settle() {
    std::vector<released_sequence> out;
    scheduler_.take_released(out);
    for (const released_sequence& r : out) {
      // Nothing is released while an outstanding step refers to it.
      for (const sim_plan& plan : outstanding_)
        for (const planned_row& row : plan.rows)
          REQUIRE(row.id != r.id);
      if (r.leased) pool_.drop(r.id);
      sim_sequence& s = all_.at(r.id);
      s.blocks.clear();
      s.open = false;
      s.stored = s.n_inserted = 0;
      if (!r.gone) continue;
      REQUIRE(s.left);
      if (s.finished) ++finished;
      all_.erase(r.id);
      for (auto g = group_.begin(); g != group_.end();) {
        auto& ids = g->second;
        ids.erase(std::remove(ids.begin(), ids.end(), r.id), ids.end());
        g = ids.empty() ? group_.erase(g) : std::next(g);
      }
    }
    check_blocks();
  }

  /// No block has two owners unless both have the same tokens in it.
  void check_blocks() {
    REQUIRE(pool_.used() + pool_.ahead() + pool_.cached() + pool_.free() == pool_.total());
    std::map<std::int32_t, std::vector<std::int32_t>> prefixes;
    for (const auto& [id, s] : all_) {
      for (std::size_t i = 0; i < s.blocks.size(); ++i) {
        REQUIRE(pool_.references(s.blocks[i]) > 0);
        const auto end = static_cast<std::ptrdiff_t>(
            std::min(s.tokens.size(), (i + 1) * static_cast<std::size_t>(limits_.block_tokens)));
        const std::vector<std::int32_t> prefix(s.tokens.begin(), s.tokens.begin() + end);
        REQUIRE(prefixes.emplace(s.blocks[i], prefix).first->second == prefix);
      }
    }
  }

  void apply(const step_decision& d) {
    // Blocks that an outstanding step writes or reads must not be granted again.
    std::set<std::int32_t> busy;
    for (const sim_plan& plan : outstanding_)
      for (const auto& [id, blocks] : plan.tables)
        busy.insert(blocks.begin(), blocks.end());
    for (sequence_id id : d.opened)
      all_.at(id).open = true;
    for (const lease_growth& g : d.grows) {
      std::vector<std::int32_t> fresh;
      REQUIRE(twill::test::grow(pool_, g.id, g.n_blocks, fresh));
      for (std::int32_t b : fresh) {
        REQUIRE(busy.count(b) == 0);
        REQUIRE(pool_.references(b) == 1);
      }
      auto& blocks = all_.at(g.id).blocks;
      blocks.insert(blocks.end(), fresh.begin(), fresh.end());
    }
    for (const lease_fork& f : d.forks) {
      REQUIRE(pool_.fork(f.id, f.from, f.n_blocks));
      sim_sequence& s = all_.at(f.id);
      s.blocks = pool_.blocks(f.id);
      s.stored = f.n_blocks * limits_.block_tokens;
      REQUIRE(s.stored < s.prompt);
    }
    for (const lease_copy& c : d.copies) {
      std::vector<std::int32_t> fresh;
      REQUIRE(twill::test::grow(pool_, c.id, 1, fresh));
      REQUIRE(busy.count(fresh.at(0)) == 0);
      sim_sequence& s = all_.at(c.id);
      s.blocks = pool_.blocks(c.id);
      REQUIRE(s.blocks.size() == static_cast<std::size_t>(c.column) + 1);
      s.stored = s.prompt - 1;
      later_copies_.push_back(
          {all_.at(c.from).blocks.at(static_cast<std::size_t>(c.column)), fresh.at(0)});
    }
    // No sequence is admitted before one that ranks earlier. Only the second and later choices of a
    // request may be passed over, since they wait until the first choice has computed the prompt.
    for (sequence_id id : d.opened) {
      if (fair_) break; // fair_policy has its own tests
      for (const auto& [other, s] : all_)
        if (s.key < all_.at(id).key && !s.open && !s.paused && !s.left) REQUIRE(is_follower(other));
    }
  }

  bool is_follower(sequence_id id) const {
    for (const auto& [leader, ids] : group_)
      if (leader != id && std::find(ids.begin(), ids.end(), id) != ids.end()) return true;
    return false;
  }

  void send(const step_decision& d) {
    sim_plan plan;
    plan.rows = d.rows;
    plan.copies = std::exchange(due_copies_, {});
    std::int32_t tokens = 0;
    std::set<sequence_id> seen;
    for (const planned_row& row : d.rows) {
      tokens += row.n_tokens;
      REQUIRE(row.n_tokens > 0);
      REQUIRE(seen.insert(row.id).second);
      REQUIRE_FALSE(all_.at(row.id).left);
      plan.tables[row.id] = all_.at(row.id).blocks;
    }
    REQUIRE(tokens <= limits_.max_step_tokens);
    REQUIRE(scheduler_.running() <= static_cast<std::size_t>(limits_.max_running));
    if (fair_) REQUIRE(scheduler_.running_of(limited_client) <= limited_most);
    outstanding_.push_back(std::move(plan));
    due_copies_ = std::exchange(later_copies_, {});
  }

  std::mt19937_64 rng_;
  plan_limits limits_;
  ranked_policy::function rank_;
  bool fair_;
  compared_scheduler scheduler_;
  block_pool pool_;
  std::vector<std::int32_t> kv_; // (n_blocks, block_tokens)
  sequence_id next_id_ = 1;
  std::map<sequence_id, sim_sequence> all_;
  std::map<sequence_id, std::vector<sequence_id>> group_;
  std::deque<sim_plan> outstanding_;
  /// Blocks to be copied before the next plan, and before the one after it.
  std::vector<std::pair<std::int32_t, std::int32_t>> due_copies_, later_copies_;
};

struct totals {
  std::uint64_t preemptions = 0, finished = 0, hits = 0, copied = 0;
};

/// Makes random operations under random limits, then runs until every request has ended.
inline void run_to_the_end(std::uint64_t seed, ranked_policy::function rank, totals& sums,
                           bool fair = false) {
  std::mt19937_64 shape(seed * 77);
  auto any = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(shape);
  };
  plan_limits limits{any(1, 40), any(1, 12), 1 << any(0, 4), seed % 2 == 0,
                     seed % 3 == 0 ? any(1, 8) : 0};
  limits.copies_blocks = seed % 5 > 1;
  simulation sim(seed, limits, any(1, 24), rank, fair);
  for (int op = 0; op < 300; ++op) {
    switch (any(0, 9)) {
    case 0:
      sim.arrive();
      break;
    case 1:
      any(0, 2) == 0 ? sim.cancel_one() : void();
      break;
    case 2:
      sim.pause_one(true);
      break;
    case 3:
      sim.pause_one(false);
      break;
    case 4:
      if (any(0, 30) == 0) sim.lose_device();
      break;
    case 5:
    case 6:
      sim.step_back();
      break;
    default:
      sim.pump();
    }
  }
  sim.resume_all();
  for (std::uint64_t guard = 0; !sim.idle(); ++guard) {
    const bool sent = sim.pump();
    // Progress: with nothing outstanding, some sequence must be schedulable.
    if (!sent && sim.n_outstanding() == 0) REQUIRE(sim.idle());
    if (sim.n_outstanding() == 2 || !sent) sim.step_back();
    REQUIRE(guard < 400000);
  }
  while (sim.n_outstanding() > 0)
    sim.step_back();
  REQUIRE(sim.pool().used() == 0);
  REQUIRE(sim.pool().leases() == 0);
  if (seed % 2 != 0) REQUIRE(sim.pool().cached() == 0);
  sums.hits += sim.hits;
  sums.copied += sim.copied;
  sums.preemptions += sim.preemptions;
  sums.finished += sim.finished;
}

} // namespace scheduling_tests
