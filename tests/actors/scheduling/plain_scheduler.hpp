// A reference for the scheduler (actors/scheduling/scheduler.hpp), written as plainly as possible
// and slow: it keeps one list of sequences, and counts, sums and sorts everything else from that
// list whenever it is needed. It has no derived state that could be out of date.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "actors/scheduling/scheduler.hpp"
#include "tests/actors/scheduling/plain_preemption.hpp"
#include "tests/support/operations.hpp"

namespace scheduling_tests {

class plain_scheduler {
public:
  plain_scheduler(const plan_limits& limits, std::unique_ptr<admission_policy> policy)
      : policy_(std::move(policy)) {
    set_limits(limits);
  }

  void set_limits(const plan_limits& limits) {
    limits_ = limits;
    limits_.max_running = std::min(limits.max_running, limits.max_step_tokens);
    limits_.max_logit_rows = std::max(limits.max_logit_rows, limits_.max_running);
  }
  void set_mixed_prompt_tokens(std::int32_t n) { limits_.mixed_prompt_tokens = n; }

  void add(const new_sequence& arrived) {
    auto& s = *all_.emplace_back(std::make_unique<plain_sequence>());
    s.of = arrived;
    most_of_[arrived.client] = arrived.most_running;
    s.delivered = arrived.made;
    s.rank = policy_->rank_of(arrived);
    s.place = arrived.leader == 0 ? plain_sequence::waits : plain_sequence::follows;
  }
  bool leave(sequence_id id) {
    plain_sequence* s = find(id);
    if (s == nullptr) return false;
    const bool in_flight = s->in_flight > 0;
    s->exit = plain_sequence::gone;
    end_exit(*s);
    return in_flight;
  }
  void set_paused(sequence_id id, bool paused) {
    plain_sequence* s = find(id);
    if (s == nullptr || s->paused == paused) return;
    s->paused = paused;
    if (!paused) policy_->on_resumed(id);
  }
  void set_held(sequence_id id, bool held) {
    if (plain_sequence* s = find(id)) s->held = held;
  }
  void shorten(sequence_id id, std::int32_t max_new) {
    if (plain_sequence* s = find(id)) s->of.max_new = std::min(s->of.max_new, max_new);
  }

  std::vector<sequence_id> candidates() {
    apply_moves();
    std::vector<sequence_id> ids;
    if (!limits_.prefix_cache) return ids;
    std::int64_t places = limits_.max_running - running();
    if (head_starved_) places = std::min<std::int64_t>(places, 1);
    // If an earlier lookup found cached blocks for a sequence, only its other tokens count against
    // the token limit of the step. A sequence that was never looked up may be cached up to its last
    // token, so it counts as one token.
    std::int64_t tokens = limits_.max_step_tokens;
    for (const plain_sequence* s : running_set())
      if (s->may_have_a_row() && s->remaining() > 1) tokens -= s->remaining();
    std::int64_t blocks_looked_up = 0;
    for (const plain_sequence* s : line()) {
      if (places <= 0 || tokens <= 0 || blocks_looked_up >= 1024) break;
      places -= 1;
      std::int64_t to_compute = 1;
      if (s->blocks > 0)
        to_compute = s->known() - s->blocks * limits_.block_tokens;
      else if (s->cached >= 0)
        to_compute = s->known() - s->cached * limits_.block_tokens;
      tokens -= std::max<std::int64_t>(to_compute, 1);
      if (s->blocks > 0) continue;
      ids.push_back(s->of.id);
      blocks_looked_up += blocks_for(s->known());
    }
    return ids;
  }

  step_decision plan(free_blocks free, std::span<const prefix_hit> hits) {
    apply_moves();
    left_ = {limits_.max_step_tokens, free.all, free.ready, limits_.max_logit_rows};
    lacks_ = {};
    exact_ = free.exact;
    decode_left_out_ = head_left_out_ = false;
    next_decodes_ = {};
    out_ = {};
    for (plain_sequence* s : running_set()) {
      if (s->remaining() != 1 || left_.tokens == 0) continue;
      if (s->may_have_a_row())
        decode(*s);
      else if (s->paused)
        note_next_decodes(*s);
    }
    if (!out_.rows.empty() && limits_.mixed_prompt_tokens > 0)
      left_.tokens = std::min<std::int64_t>(left_.tokens, limits_.mixed_prompt_tokens);
    for (plain_sequence* s : running_set())
      if (s->may_have_a_row() && s->remaining() > 1) add_row(*s, most_tokens(*s));
    while (lacks_.decode_blocks == 0 && !decode_left_out_ && left_.tokens > 0 && !line().empty() &&
           admit(*line().front(), hits)) {
    }
    for (const planned_row& row : out_.rows)
      if (at(row.id).computed >= at(row.id).of.prompt_tokens) fork_followers(row.id);
    head_starved_ = lacks_.head_blocks > 0 || head_left_out_;
    for (plain_sequence* s : who_gives_way(everyone(), lacks_))
      give_way(*s);
    if (out_.preempted == 0) share_running_set();
    return out_;
  }

  void row_done(sequence_id id, bool draws, bool drew) {
    plain_sequence& s = at(id);
    s.in_flight -= 1;
    s.drawing -= draws;
    s.delivered += drew;
    end_exit(s);
  }
  void forget_device() {
    for (released_sequence& r : released_)
      r = {r.id, false, false, r.gone};
    for (plain_sequence* s : everyone()) {
      s->in_flight = s->drawing = s->computed = s->blocks = s->shared = 0;
      s->cached = -1;
      s->opened = false;
    }
    for (plain_sequence* s : running_set()) {
      if (s->exit == plain_sequence::gone)
        end_exit(*s);
      else
        back_to_line(*s);
    }
  }
  /// The number of blocks for copies, and for sequences that are admitted without a look-up.
  std::int64_t further_blocks() {
    apply_moves();
    std::int64_t copies = 0, admitted = 0;
    const auto n_followers = [&](sequence_id leader) {
      return std::count_if(all_.begin(), all_.end(), [&](const auto& s) {
        return s->place == plain_sequence::follows && s->of.leader == leader;
      });
    };
    std::int64_t places = limits_.max_running - running();
    if (head_starved_ && limits_.prefix_cache) places = std::min<std::int64_t>(places, 1);
    std::int64_t tokens = limits_.max_step_tokens;
    for (const plain_sequence* s : running_set())
      if (s->may_have_a_row() && s->remaining() > 1) tokens -= s->remaining();
    for (const plain_sequence* s : line()) {
      if (places-- <= 0 || tokens <= 0 || admitted >= 1024) break;
      const std::int64_t cached = s->blocks > 0 ? s->blocks : s->cached;
      tokens -=
          cached < 0 ? 1 : std::max<std::int64_t>(s->known() - cached * limits_.block_tokens, 1);
      if (s->blocks > 0 || !limits_.prefix_cache) admitted += blocks_for(s->known()) - s->blocks;
      copies += n_followers(s->of.id);
    }
    for (const planned_row& row : out_.rows)
      if (find(row.id) != nullptr) copies += n_followers(row.id);
    return limits_.copies_blocks ? admitted + copies : admitted;
  }
  /// The blocks for two more tokens of each sequence that draws in the last plan or was left out.
  decode_blocks blocks_of_next_decodes() const { return next_decodes_; }
  bool decode_left_out() const { return decode_left_out_; }
  bool head_left_out() const { return head_left_out_; }
  std::vector<released_sequence> take_released() { return std::exchange(released_, {}); }
  bool has_released() const { return !released_.empty(); }

  std::int64_t running() const {
    return std::count_if(all_.begin(), all_.end(),
                         [](const auto& s) { return s->place == plain_sequence::runs; });
  }
  std::int64_t running_of(std::uint64_t client) const {
    return std::count_if(all_.begin(), all_.end(), [&](const auto& s) {
      return s->place == plain_sequence::runs && s->of.client == client;
    });
  }

  // Queries for tests that drive the scheduler.
  const plan_limits& limits() const { return limits_; }
  plain_sequence* find(sequence_id id) const {
    for (const auto& s : all_)
      if (s->of.id == id) return s.get();
    return nullptr;
  }
  plain_sequence& at(sequence_id id) const {
    plain_sequence* s = find(id);
    twill::test::demand(s != nullptr, "sequence " + std::to_string(id) + " is not known");
    return *s;
  }
  std::vector<plain_sequence*> everyone() const {
    std::vector<plain_sequence*> found;
    for (const auto& s : all_)
      found.push_back(s.get());
    return found;
  }

private:
  struct budget {
    std::int64_t tokens = 0, blocks = 0, ready = 0, logit_rows = 0;
  };

  std::int64_t blocks_for(std::int64_t tokens) const {
    return (tokens + limits_.block_tokens - 1) / limits_.block_tokens;
  }
  /// All running sequences, in the order of service.
  std::vector<plain_sequence*> running_set() const {
    std::vector<plain_sequence*> found;
    for (const auto& s : all_)
      if (s->place == plain_sequence::runs) found.push_back(s.get());
    std::sort(found.begin(), found.end(), served_before);
    return found;
  }
  /// The sequences that may be admitted, in the order of service. If the running sequences of a
  /// client are limited, only as many of its sequences are in this list as it may still run.
  std::vector<plain_sequence*> line() const {
    std::vector<plain_sequence*> waiting, found;
    for (const auto& s : all_)
      if (s->place == plain_sequence::waits && !s->paused && !s->held) waiting.push_back(s.get());
    std::sort(waiting.begin(), waiting.end(), served_before);
    std::map<std::uint64_t, std::int64_t> in_line;
    for (plain_sequence* s : waiting) {
      const std::uint64_t client = s->of.client;
      const std::int64_t most = most_of_.at(client);
      if (most > 0 && in_line[client]++ + running_of(client) >= most) continue;
      found.push_back(s);
    }
    return found;
  }
  void apply_moves() {
    std::vector<moved_sequence> moved;
    policy_->take_moved(moved);
    for (const moved_sequence& m : moved)
      at(m.id).rank = m.rank;
  }

  void decode(plain_sequence& s) {
    const std::int64_t need = blocks_for(s.computed + 1) - s.blocks;
    // A sequence that is served later gets no block while an earlier one lacks blocks.
    const bool lacks = need > 0 && (need > left_.blocks || lacks_.first_starved);
    if (lacks && exact_) {
      lacks_.decode_blocks += need;
      note_next_decodes(s);
      if (!lacks_.first_starved) lacks_.first_starved = s.key();
      return;
    }
    if (lacks || need > left_.ready) { // the pool has granted no block for this sequence yet
      decode_left_out_ = true;
      note_next_decodes(s);
      return;
    }
    grow(s, need);
    left_.blocks -= need;
    left_.ready -= need;
    add_row(s, 1);
  }
  std::int64_t most_tokens(const plain_sequence& s) const {
    const std::int64_t n = std::min(s.remaining(), left_.tokens);
    if (s.of.scored) return std::min(n, left_.logit_rows);
    return left_.logit_rows > 0 ? n : 0;
  }
  void note_next_decodes(const plain_sequence& s) {
    const std::int64_t last = s.computed + s.of.max_new - s.delivered - s.drawing;
    for (std::int64_t n = 1; n <= 2; ++n)
      (n == 1 ? next_decodes_.of_one_step : next_decodes_.of_two_steps) +=
          std::max<std::int64_t>(blocks_for(std::min(s.computed + n, last)) - s.blocks, 0);
  }
  void add_row(plain_sequence& s, std::int64_t n) {
    if (n == 0) return;
    const bool draws = n == s.remaining();
    out_.rows.push_back(
        {s.of.id, static_cast<std::int32_t>(s.computed), static_cast<std::int32_t>(n), draws});
    left_.tokens -= n;
    left_.logit_rows -= s.of.scored ? n : draws ? 1 : 0;
    s.computed += n;
    s.in_flight += 1;
    s.drawing += draws;
    if (draws) note_next_decodes(s);
  }
  void grow(plain_sequence& s, std::int64_t n) {
    s.blocks += n;
    if (n > 0) out_.grows.push_back({s.of.id, static_cast<std::int32_t>(n)});
  }

  /// Admits the first sequence in the line. Returns whether there was room.
  bool admit(plain_sequence& head, std::span<const prefix_hit> hits) {
    if (running() >= limits_.max_running) {
      lacks_.running_set_full = true;
      return false;
    }
    if (left_.logit_rows == 0) return false;
    prefix_hit hit;
    if (limits_.prefix_cache && head.blocks == 0) {
      const auto found = std::find_if(hits.begin(), hits.end(),
                                      [&](const auto& one) { return one.id == head.of.id; });
      if (found == hits.end()) return false;
      hit = *found;
      head.cached = hit.n_blocks + hit.n_loaded;
    }
    const std::int64_t fresh = blocks_for(head.known()) - head.blocks - hit.n_blocks;
    const std::int64_t spare = running();
    const bool lacks = fresh + hit.n_evictable + spare > left_.blocks;
    if (lacks && exact_) {
      lacks_.head = head.key();
      lacks_.head_blocks = fresh + hit.n_evictable + spare - left_.blocks;
      return false;
    }
    if (lacks || fresh > left_.ready || !hit.kept) {
      head_left_out_ = true;
      return false;
    }
    left_.blocks -= fresh + hit.n_evictable;
    left_.ready -= fresh;
    if (hit.n_blocks > 0) out_.reuses.push_back(head.of.id);
    head.blocks += hit.n_blocks;
    head.computed += std::int64_t{hit.n_blocks + hit.n_loaded} * limits_.block_tokens;
    grow(head, fresh);
    out_.opened.push_back(head.of.id);
    head.opened = true;
    head.place = plain_sequence::runs;
    weight_of_[head.of.client] = head.of.weight;
    policy_->on_admitted(head.of.id);
    add_row(head, most_tokens(head));
    return true;
  }

  /// When the first choice of a request has computed the prompt, the other choices share the full
  /// blocks of the prompt, and get a copy of the block that is partly filled. The prompt's last
  /// token does not count as part of the prompt here, since each choice computes it itself to get
  /// logits.
  void fork_followers(sequence_id leader) {
    const std::int64_t before_last = at(leader).of.prompt_tokens - 1;
    const std::int64_t full = before_last / limits_.block_tokens;
    const std::int64_t part = before_last % limits_.block_tokens;
    for (plain_sequence* s : everyone()) {
      if (s->place != plain_sequence::follows || s->of.leader != leader) continue;
      s->place = plain_sequence::waits;
      s->blocks = s->shared = full;
      s->computed = full * limits_.block_tokens;
      if (full > 0) out_.forks.push_back({s->of.id, leader, static_cast<std::int32_t>(full)});
      if (limits_.copies_blocks && part > 0 && lacks_.decode_blocks == 0 &&
          left_.blocks - running() >= 1 && left_.ready >= 1) {
        left_.blocks -= 1;
        left_.ready -= 1;
        s->blocks += 1;
        s->computed = before_last;
        out_.copies.push_back({s->of.id, leader, static_cast<std::int32_t>(full)});
      }
    }
  }

  void share_running_set() {
    const auto waiting = line();
    if (!policy_->shares_running_set() || waiting.empty() || lacks_.decode_blocks > 0) return;
    if (!lacks_.running_set_full && lacks_.head_blocks == 0) return;
    const plain_sequence& head = *waiting.front();
    plain_sequence* last = nullptr;
    for (plain_sequence* s : running_set()) {
      if (s->exit != plain_sequence::stays) return;
      // With one less, its client still runs more for its weight than the head's with one more.
      const std::uint64_t client = s->of.client;
      if (!s->displaced && (running_of(client) - 1) * head.of.weight >=
                               (running_of(head.of.client) + 1) * weight_of_.at(client))
        last = s;
    }
    if (last == nullptr) return;
    last->displaced = true;
    last->rank_after_displacement = head.rank + 1;
    give_way(*last);
  }
  void give_way(plain_sequence& s) {
    out_.preempted += 1;
    s.exit = plain_sequence::gives_way;
    end_exit(s);
  }

  /// Completes an exit when no step in flight has a row of the sequence.
  void end_exit(plain_sequence& s) {
    if (s.exit == plain_sequence::stays || s.in_flight > 0) return;
    const bool gone = s.exit == plain_sequence::gone;
    released_.push_back({s.of.id, s.blocks > 0, s.opened, gone});
    if (!gone) return back_to_line(s);
    const sequence_id id = s.of.id;
    const auto delivered = static_cast<std::int32_t>(s.delivered);
    std::erase_if(all_, [&](const auto& one) { return one->of.id == id; });
    policy_->on_left(id, delivered);
  }
  void back_to_line(plain_sequence& s) {
    s.blocks = s.shared = s.computed = 0;
    s.cached = -1;
    s.opened = false;
    s.exit = plain_sequence::stays;
    if (s.place == plain_sequence::runs) s.rank = std::max(s.rank, s.rank_after_displacement);
    s.place = plain_sequence::waits;
  }

  plan_limits limits_;
  std::unique_ptr<admission_policy> policy_;
  std::map<std::uint64_t, std::int64_t> most_of_;    ///< by client, from its last arrival
  std::vector<std::unique_ptr<plain_sequence>> all_; ///< in the order of arrival
  std::map<std::uint64_t, std::int64_t> weight_of_;  ///< by client, from its last admission
  std::vector<released_sequence> released_;
  bool decode_left_out_ = false, head_left_out_ = false;
  decode_blocks next_decodes_;
  bool exact_ = true;         ///< the last plan was given the exact number of free blocks
  bool head_starved_ = false; ///< the first in the line lacked blocks in the last plan
  // The state of the plan that is being made.
  budget left_;
  plain_shortage lacks_;
  step_decision out_;
};

} // namespace scheduling_tests
