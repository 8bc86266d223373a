// A scheduler and its plain reference, driven by random operations in the way in which the batcher
// drives it, but with arbitrary numbers: there are few free blocks and cached blocks, and limits
// are small, so that every bound is reached.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/actors/scheduling/compared_scheduler.hpp"
#include "tests/support/operations.hpp"

namespace scheduling_tests {

/// Small choices out of one of an operation's numbers.
class choices {
public:
  explicit choices(std::uint32_t number) : rest_(number) {}
  /// A number in 0 .. n - 1.
  std::uint32_t of(std::uint32_t n) {
    const std::uint32_t chosen = rest_ % n;
    rest_ /= n;
    return chosen;
  }
  std::int32_t between(std::int32_t low, std::int32_t high) {
    return low + static_cast<std::int32_t>(of(static_cast<std::uint32_t>(high - low + 1)));
  }
  bool one_in(std::uint32_t n) { return of(n) == n - 1; }

private:
  std::uint32_t rest_;
};

/// An admission policy that logs every call that it gets, and changes its ranks after each call.
/// There are only a few ranks, so many sequences have equal ones.
class restless_policy final : public admission_policy {
public:
  explicit restless_policy(std::vector<std::string>& log, bool shares)
      : log_(log), shares_(shares) {}
  std::int64_t rank_of(const new_sequence& arrived) override {
    waiting_[arrived.id] = 0;
    note("rank_of", arrived.id);
    return static_cast<std::int64_t>(arrived.id % 3);
  }
  void on_admitted(sequence_id id) override {
    note("on_admitted", id);
    waiting_.erase(id);
  }
  void on_left(sequence_id id, std::int32_t output_tokens) override {
    note("on_left with " + std::to_string(output_tokens), id);
    waiting_.erase(id);
  }
  void on_resumed(sequence_id id) override { note("on_resumed", id); }
  void take_moved(std::vector<moved_sequence>& out) override {
    if (!std::exchange(was_called_, false)) return;
    ++n_asked_;
    for (auto& [id, moves] : waiting_)
      if ((id + n_asked_) % 7 == 0)
        out.push_back({id, static_cast<std::int64_t>((id * 5 + ++moves * 3) % 4) - 1});
  }
  bool shares_running_set() const override { return shares_; }

private:
  void note(const std::string& what, sequence_id id) {
    log_.push_back(what + " " + std::to_string(id));
    was_called_ = true;
  }
  std::vector<std::string>& log_;
  bool shares_;
  std::map<sequence_id, int> waiting_;
  sequence_id n_asked_ = 0;
  bool was_called_ = false;
};

class scheduler_fixture {
public:
  using policies = std::pair<std::unique_ptr<admission_policy>, std::unique_ptr<admission_policy>>;
  /// `scale` multiplies the lengths of prompts; if it is more than 1, blocks have one or two
  /// tokens. With `many_choices`, all requests have several choices.
  scheduler_fixture(plan_limits limits, policies both, std::int32_t scale = 1,
                    bool many_choices = false)
      : scale_(scale), many_choices_(many_choices),
        both_(scaled(limits, scale), std::move(both.first), std::move(both.second)) {}

  static plan_limits any_limits(choices any) {
    plan_limits limits;
    limits.max_step_tokens = any.one_in(4) ? any.between(1, 4) : any.between(4, 30);
    limits.max_running = any.between(1, 6);
    limits.block_tokens = any.between(1, 5);
    limits.prefix_cache = any.one_in(2);
    limits.copies_blocks = any.one_in(2);
    limits.mixed_prompt_tokens = any.one_in(2) ? any.between(1, 6) : 0;
    limits.max_logit_rows = any.between(1, 12);
    return limits;
  }

  void apply(const twill::test::operation& o) {
    const std::uint32_t kind = o.kind % 34;
    if (kind < 6) return arrive(choices(o.a), choices(o.b));
    if (kind < 16) return plan(choices(o.a), o.b);
    if (kind < 22) return step_back(choices(o.a));
    if (kind == 22) return leave_group(o.a);
    if (kind == 23) return leave_one(o.a);
    if (kind < 26) return on_any(o.a, [&](sequence_id id) { both_.pause(id); });
    if (kind < 28) return on_any(o.a, [&](sequence_id id) { both_.resume(id); });
    if (kind == 28) return on_any(o.a, [&](sequence_id id) { both_.hold(id); });
    if (kind == 29) return on_any(o.a, [&](sequence_id id) { both_.unhold(id); });
    if (kind == 30) return release();
    if (kind > 31) return configure(choices(o.a));
    if (o.a % 3 == 0) return lose_device(choices(o.b), choices(o.c));
    if (o.a % 3 == 1) return set_mixed(choices(o.b));
    on_any(o.b, [&](sequence_id id) { shorten(id, choices(o.c)); });
  }

  /// Every sequence may run and there is room, so all must come to their ends.
  void run_to_the_end() {
    for (const sequence_id id : ids()) {
      both_.resume(id);
      both_.unhold(id);
    }
    for (int round = 0; !facts_.empty(); ++round) {
      twill::test::demand(round < 5000 * scale_, "the sequences do not end");
      plan(choices(0), 0, true);
      while (!outstanding_.empty())
        step_back(choices(round));
      release();
    }
  }
  void cancel_all() {
    for (const sequence_id id : ids())
      leave(id);
  }
  /// After all sequences have left, the scheduler must hold nothing.
  void demand_empty() {
    using twill::test::demand;
    while (!outstanding_.empty())
      step_back(choices(0));
    release();
    demand(facts_.empty(), "a sequence was not released");
    demand(both_.plain().everyone().empty(), "the twin has a sequence left");
    demand(both_.running() == 0 && !both_.has_released(), "something runs or is released");
    step_decision d;
    std::vector<sequence_id> ids;
    both_.candidates(ids);
    both_.plan(1000, d);
    demand(ids.empty() && d.rows.empty(), "somebody is left in the line");
  }

  compared_scheduler& both() { return both_; }
  std::map<std::string, std::uint64_t> counts; ///< of what happened, to see that everything does

private:
  struct facts {
    std::int32_t max_new = 0;
    sequence_id leader = 0; ///< the sequence's own id for the first choice
    bool left = false;
  };
  struct settings {
    std::int32_t weight = 1, most_running = 0;
  };

  std::vector<sequence_id> ids() const {
    std::vector<sequence_id> all;
    for (const auto& [id, one] : facts_)
      all.push_back(id);
    return all;
  }

  static plan_limits scaled(plan_limits limits, std::int32_t scale) {
    if (scale == 1) return limits;
    limits.max_step_tokens *= 2 * scale;
    limits.max_logit_rows *= scale;
    limits.block_tokens = 1 + limits.block_tokens % 2;
    limits.prefix_cache = true;
    return limits;
  }

  void arrive(choices sizes, choices kinds) {
    if (facts_.size() >= 14) return;
    const auto client = static_cast<std::uint64_t>(kinds.between(1, 4));
    const std::int32_t n = kinds.one_in(3) || many_choices_ ? kinds.between(2, 4) : 1;
    const sequence_id leader = next_id_;
    new_sequence arrived;
    arrived.prompt_tokens = scale_ * (sizes.one_in(4) ? sizes.between(1, 30) : sizes.between(1, 9));
    arrived.max_new = sizes.between(1, 8);
    arrived.client = client;
    arrived.weight = settings_[client].weight;
    arrived.most_running = settings_[client].most_running;
    arrived.priority = kinds.between(-1, 1);
    if (scale_ > 1) arrived.prompt_tokens -= sizes.between(0, 2); // about whole numbers of blocks
    const bool scored = kinds.one_in(4);
    const bool made = kinds.one_in(3);
    for (std::int32_t i = 0; i < n; ++i) {
      arrived.id = next_id_++;
      arrived.leader = i == 0 ? 0 : leader;
      arrived.scored = i == 0 && scored;
      arrived.made = made ? sizes.between(0, arrived.max_new - 1) : 0;
      facts_[arrived.id] = {arrived.max_new, leader, false};
      both_.add(arrived);
    }
  }

  void plan(choices any, std::uint32_t for_hits, bool plenty = false) {
    if (outstanding_.size() >= 2) return;
    release();
    std::vector<sequence_id> asked;
    both_.candidates(asked);
    // Some sequences are held for blocks from elsewhere, so that others may take their places.
    if (!plenty && !asked.empty() && any.one_in(8)) {
      both_.hold(asked[any.of(static_cast<std::uint32_t>(asked.size()))]);
      both_.candidates(asked);
    }
    std::vector<prefix_hit> hits;
    choices hit(for_hits);
    for (const sequence_id id : asked)
      hits.push_back(any_hit(id, hit));
    if (!plenty && !hits.empty() && any.one_in(12)) hits.pop_back();
    const std::int64_t free_blocks =
        plenty ? 100'000 : scale_ * (any.one_in(3) ? any.between(0, 30) : any.between(0, 8));
    // Not all free blocks were granted ahead.
    const std::int64_t ready = !plenty && any.one_in(3)
                                   ? any.between(0, static_cast<std::int32_t>(free_blocks))
                                   : free_blocks;
    if (any.one_in(4)) std::reverse(hits.begin(), hits.end());
    if (!plenty && !hits.empty() && any.one_in(6)) hits.back().kept = false;
    step_decision d;
    both_.plan({free_blocks, ready, plenty || !any.one_in(5)}, d, hits);
    if (both_.plain().decode_left_out()) ++counts["a decode left out"];
    if (both_.plain().head_left_out()) ++counts["a head left out"];
    note(d);
    // A plan without rows is not sent.
    if (!d.rows.empty()) outstanding_.push_back(d.rows);
  }
  prefix_hit any_hit(sequence_id id, choices& any) const {
    const plain_sequence& s = both_.plain().at(id);
    const auto most =
        static_cast<std::int32_t>((s.known() - 1) / both_.plain().limits().block_tokens);
    prefix_hit hit{id};
    if (s.of.scored || any.one_in(3)) return hit;
    hit.n_blocks = std::min(scale_ * any.between(0, 6), most);
    hit.n_loaded = any.one_in(2) ? std::min(any.between(0, 3), most - hit.n_blocks) : 0;
    hit.n_evictable = std::min(any.between(0, 2), hit.n_blocks);
    return hit;
  }
  void note(const step_decision& d) {
    counts["rows"] += d.rows.size();
    counts["reuses"] += d.reuses.size();
    counts["forks"] += d.forks.size();
    counts["copies"] += d.copies.size();
    counts["preempted"] += static_cast<std::uint64_t>(d.preempted);
  }

  void step_back(choices any) {
    if (outstanding_.empty()) return;
    const std::vector<planned_row> rows = outstanding_.front();
    outstanding_.pop_front();
    for (const planned_row& row : rows) {
      const facts& one = facts_.at(row.id);
      // A sequence that left may have been skipped. Any other draws as it was planned.
      const bool drew = row.draws && !(one.left && any.one_in(2));
      const bool over = drew && !one.left &&
                        (both_.plain().at(row.id).delivered + 1 >= one.max_new || any.one_in(8));
      const bool before = any.one_in(2);
      if (over && before) leave(row.id);
      both_.row_done(row.id, row.draws, drew);
      if (over && !before) leave(row.id);
      counts["ended"] += over;
    }
  }

  template <class F>
  void on_any(std::uint32_t which, F&& apply) {
    // Sometimes, use an id of no sequence.
    if (which % 16 == 15) return apply(next_id_ + 3);
    if (facts_.empty()) return;
    apply(
        std::next(facts_.begin(), static_cast<std::ptrdiff_t>(which / 16 % facts_.size()))->first);
  }
  void leave(sequence_id id) {
    if (const auto found = facts_.find(id); found != facts_.end()) found->second.left = true;
    both_.leave(id);
  }
  void leave_group(std::uint32_t which) {
    on_any(which, [&](sequence_id id) {
      const auto found = facts_.find(id);
      if (found == facts_.end()) return leave(id);
      const sequence_id leader = found->second.leader;
      for (const sequence_id other : ids())
        if (facts_.at(other).leader == leader) leave(other);
    });
  }
  /// A first choice is not removed alone while other choices wait for its prompt.
  void leave_one(std::uint32_t which) {
    on_any(which, [&](sequence_id id) {
      for (const plain_sequence* s : both_.plain().everyone())
        if (s->of.leader == id && s->place == plain_sequence::follows) return;
      leave(id);
    });
  }
  void shorten(sequence_id id, choices any) {
    const plain_sequence* s = both_.plain().find(id);
    const std::int64_t drawn = s == nullptr ? 0 : s->delivered + s->drawing;
    const auto max_new = static_cast<std::int32_t>(drawn) + any.between(1, 6);
    both_.shorten(id, max_new);
    if (const auto one = facts_.find(id); one != facts_.end())
      one->second.max_new = std::min(one->second.max_new, max_new);
  }
  void release() {
    std::vector<released_sequence> out;
    both_.take_released(out);
    for (const released_sequence& r : out) {
      for (const auto& rows : outstanding_)
        for (const planned_row& row : rows)
          twill::test::demand(row.id != r.id, "one was released that an outstanding step has");
      if (r.gone) {
        twill::test::demand(facts_.at(r.id).left, "one is gone that was not told to leave");
        facts_.erase(r.id);
      }
    }
  }
  void lose_device(choices limits, choices any) {
    outstanding_.clear();
    both_.forget_device();
    counts["lost"] += 1;
    if (any.one_in(2)) release();
    if (any.one_in(2)) both_.set_limits(any_limits(limits));
  }
  void set_mixed(choices any) { both_.set_mixed_prompt_tokens(any.between(0, 6)); }
  /// Simulates a reload of the configuration: a client gets another weight and another limit,
  /// possibly while it has sequences.
  void configure(choices any) {
    const auto client = static_cast<std::uint64_t>(any.between(1, 4));
    settings& of = settings_.at(client);
    of.weight = any.between(1, 4);
    of.most_running = any.between(0, 3);
  }

  std::int32_t scale_;
  bool many_choices_;
  compared_scheduler both_;
  std::map<sequence_id, facts> facts_; ///< facts of sequences that may still be in the scheduler
  std::map<std::uint64_t, settings> settings_{{1, {1, 0}}, {2, {2, 1}}, {3, {3, 2}}, {4, {1, 3}}};
  std::deque<std::vector<planned_row>> outstanding_;
  sequence_id next_id_ = 1;
};

} // namespace scheduling_tests
