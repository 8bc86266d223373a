#include "actors/scheduling/scheduler.hpp"

#include <algorithm>
#include <iterator>

#include "config/base/assert.hpp"

namespace twill::actors {

namespace {
/// The most prompt blocks that are looked up in the prefix cache for one plan. The bound limits the
/// time that the look-ups take if the queue is long.
constexpr std::int64_t most_blocks_looked_up = 1024;
} // namespace

scheduler::scheduler(const plan_limits& limits, std::unique_ptr<admission_policy> policy)
    : policy_(std::move(policy)) {
  set_limits(limits);
}

void scheduler::set_limits(const plan_limits& limits) {
  TWILL_ASSERT(limits.max_step_tokens > 0 && limits.max_running > 0 && limits.block_tokens > 0,
               "plan limits must be positive");
  TWILL_ASSERT(running_.empty(), "limits change while nothing runs");
  limits_ = limits;
  limits_.max_running = std::min(limits.max_running, limits.max_step_tokens);
  limits_.max_logit_rows = std::max(limits.max_logit_rows, limits_.max_running);
}

void scheduler::shorten(sequence_id id, std::int32_t max_new) {
  if (scheduled_sequence* s = find(id)) s->max_new = std::min(s->max_new, max_new);
}

scheduled_sequence* scheduler::find(sequence_id id) {
  return sequences_.find(id);
}

bool scheduler::is_running(sequence_id id) const {
  const scheduled_sequence* s = sequences_.find(id);
  return s != nullptr && s->where == scheduled_sequence::place::running;
}

void scheduler::add(const new_sequence& arrived) {
  TWILL_ASSERT(arrived.prompt_tokens > 0 && arrived.made >= 0 && arrived.max_new > arrived.made,
               "a sequence needs a prompt and an output");
  queue_.note_arrival(arrived);
  scheduled_sequence& s = sequences_[arrived.id];
  s.key = {policy_->rank_of(arrived), arrived.id};
  s.leader = arrived.leader;
  s.client = arrived.client;
  s.weight = arrived.weight;
  s.prompt = arrived.prompt_tokens;
  s.max_new = arrived.max_new;
  s.delivered = arrived.made;
  s.scored = arrived.scored;
  if (arrived.leader == 0) {
    queue_.add(s);
  } else {
    s.where = scheduled_sequence::place::following;
    followers_.emplace(arrived.leader, arrived.id);
    sequences_.at(arrived.leader).leads = true;
  }
}

bool scheduler::leave(sequence_id id) {
  scheduled_sequence* s = find(id);
  if (s == nullptr) return false;
  const bool in_flight = s->in_flight > 0;
  s->leaving = scheduled_sequence::exit::gone;
  settle(*s);
  return in_flight;
}

void scheduler::pause(sequence_id id) {
  set_paused(id, true);
}

void scheduler::resume(sequence_id id) {
  set_paused(id, false);
}

void scheduler::set_paused(sequence_id id, bool paused) {
  scheduled_sequence* s = find(id);
  if (s == nullptr || s->paused == paused) return;
  const bool waits = s->where == scheduled_sequence::place::waiting;
  if (waits) queue_.remove(*s);
  s->paused = paused;
  if (waits) queue_.add(*s);
  if (!paused) policy_->on_resumed(id);
}

void scheduler::set_held(sequence_id id, bool held) {
  scheduled_sequence* s = find(id);
  if (s == nullptr || s->held == held) return;
  const bool waits = s->where == scheduled_sequence::place::waiting;
  if (waits) queue_.remove(*s);
  s->held = held;
  if (waits) queue_.add(*s);
}

/// Changes the rank of a sequence that was never admitted.
void scheduler::move(const moved_sequence& moved) {
  scheduled_sequence* s = find(moved.id);
  if (s == nullptr) return;
  const bool waits = s->where == scheduled_sequence::place::waiting;
  const bool holds = holding_.erase(s->key) > 0;
  if (waits) queue_.remove(*s);
  s->key.rank = moved.rank;
  if (waits) queue_.add(*s);
  if (holds) holding_.emplace(s->key, s);
}

void scheduler::apply_moves() {
  policy_->take_moved(moves_);
  for (const moved_sequence& moved : moves_)
    move(moved);
  moves_.clear();
}

/// Calls visit(sequence) for the waiting sequences that the next plan may admit, in order of
/// service, until a call returns false.
template <class F>
void scheduler::each_admissible(F&& visit) {
  apply_moves();
  auto room = static_cast<std::size_t>(limits_.max_running);
  room -= std::min(room, running_.size());
  // If the last plan could not admit the first sequence of the queue, only that sequence is
  // visited, since no other one may be admitted before it.
  if (head_starved_ && limits_.prefix_cache) room = std::min<std::size_t>(room, 1);
  // No more sequences are visited than may fit the step, as far as earlier look-ups tell.
  std::int64_t tokens = limits_.max_step_tokens - running_.prompt_tokens_left();
  for (const auto& [key, s] : queue_.line()) {
    if (room == 0 || tokens <= 0) return;
    --room;
    const std::int32_t cached = s->blocks > 0 ? s->blocks : s->hint;
    tokens -= cached < 0 ? 1 : std::max(s->known() - cached * limits_.block_tokens, 1);
    if (!visit(*s)) return;
  }
}

void scheduler::candidates(std::vector<sequence_id>& out) {
  out.clear();
  if (!limits_.prefix_cache) return;
  std::int64_t blocks = 0;
  each_admissible([&](const scheduled_sequence& s) {
    if (s.blocks > 0) return true;
    blocks += limits_.blocks_for(s.known());
    out.push_back(s.key.id);
    return blocks < most_blocks_looked_up;
  });
}

std::int64_t scheduler::n_followers(sequence_id leader) const {
  return std::distance(followers_.lower_bound({leader, 0}),
                       followers_.lower_bound({leader + 1, 0}));
}

std::int64_t scheduler::further_blocks() {
  std::int64_t n = 0, copies = 0;
  each_admissible([&](const scheduled_sequence& s) {
    if (s.blocks > 0 || !limits_.prefix_cache) n += limits_.blocks_for(s.known()) - s.blocks;
    if (s.leads) copies += n_followers(s.key.id);
    return n < most_blocks_looked_up;
  });
  for (const sequence_id leader : leaders_under_way_)
    copies += n_followers(leader);
  return limits_.copies_blocks ? n + copies : n;
}

void scheduler::plan(free_blocks free, step_decision& out, std::span<const prefix_hit> hits) {
  out.opened.clear();
  out.rows.clear();
  out.reuses.clear();
  out.grows.clear();
  out.forks.clear();
  out.copies.clear();
  out.preempted = 0;
  apply_moves();
  step_filler step(limits_, free, out);
  step.add_decodes(running_);
  step.add_prefills(running_);
  // While a running sequence lacks blocks, no admission may take the blocks that become free.
  if (step.lacking().decode_blocks == 0 && !step.decode_left_out()) admit(step, hits);
  // Followers run in the next step at the earliest, when their leader's KV is computed.
  for (sequence_id leader : step.completed_leaders())
    fork_followers(leader, step, out);
  next_decodes_ = step.blocks_of_next_decodes();
  leaders_under_way_ = step.other_leaders();
  decode_left_out_ = step.decode_left_out();
  head_left_out_ = step.head_left_out();
  head_starved_ = step.lacking().head_blocks > 0 || head_left_out_;
  for (scheduled_sequence* s : choose_preempted(step.lacking(), running_.order(), holding_))
    preempt(*s, out);
  if (out.preempted == 0) share_running_set(step.lacking(), out);
}

void scheduler::preempt(scheduled_sequence& s, step_decision& out) {
  s.leaving = scheduled_sequence::exit::preempted;
  settle(s);
  ++out.preempted;
}

/// Preempts a running sequence whose client runs more than its share, so that the first sequence of
/// the queue can take its place.
void scheduler::share_running_set(const shortage& lacking, step_decision& out) {
  if (!policy_->shares_running_set() || queue_.line().empty()) return;
  const scheduled_sequence& head = *queue_.line().begin()->second;
  scheduled_sequence* displaced = choose_displaced(lacking, running_, head);
  if (displaced == nullptr) return;
  displaced->displaced = true;
  displaced->rank_in_queue = head.key.rank + 1;
  preempt(*displaced, out);
}

void scheduler::admit(step_filler& step, std::span<const prefix_hit> hits) {
  for (auto i = queue_.line().begin(); i != queue_.line().end() && step.has_tokens();) {
    const priority_key key = i->first;
    scheduled_sequence& s = *i->second;
    if (running_.size() >= static_cast<std::size_t>(limits_.max_running))
      return step.note_running_set_full();
    if (!step.has_logit_rows()) return;
    prefix_hit hit;
    if (limits_.prefix_cache && s.blocks == 0) {
      const auto found = std::find_if(hits.begin(), hits.end(),
                                      [&](const prefix_hit& h) { return h.id == key.id; });
      if (found == hits.end()) return; // it was not looked up yet; a later plan may admit it
      hit = *found;
      // Most hits come in the order of the queue, so the next one is found at once.
      if (found == hits.begin()) hits = hits.subspan(1);
      s.hint = hit.n_blocks + hit.n_loaded;
    }
    // Beside the blocks that this sequence needs, one block for each running sequence stays free,
    // so that the admission does not cause a preemption in the next few steps.
    const std::int64_t need = limits_.blocks_for(s.known()) - s.blocks - hit.n_blocks;
    const std::int64_t spare = static_cast<std::int64_t>(running_.size());
    if (!step.take_blocks_of_head(key, need, hit, spare)) return;
    i = queue_.admit(i);
    running_.add(s);
    s.where = scheduled_sequence::place::running;
    holding_.erase(key);
    policy_->on_admitted(key.id);
    step.admit(s, hit);
  }
}

void scheduler::fork_followers(sequence_id leader, step_filler& step, step_decision& out) {
  // A follower is a further choice of the leader's request and shares its prompt. Each follower
  // computes at least the last prompt token itself, because its first output token is drawn from
  // that token's logits.
  const std::int32_t before_last = sequences_.at(leader).prompt - 1;
  const std::int32_t full = before_last / limits_.block_tokens;
  const bool has_part = limits_.copies_blocks && before_last > full * limits_.block_tokens;
  auto i = followers_.lower_bound({leader, 0});
  while (i != followers_.end() && i->first == leader) {
    scheduled_sequence& follower = sequences_.at(i->second);
    if (full > 0) {
      follower.blocks = follower.shared = full;
      follower.computed = full * limits_.block_tokens;
      out.forks.push_back({follower.key.id, leader, full});
    }
    // As for an admission, one block for each running sequence stays free.
    if (has_part && step.take_block_of_copy(static_cast<std::int64_t>(running_.size()))) {
      follower.blocks = full + 1;
      follower.computed = before_last;
      out.copies.push_back({follower.key.id, leader, full});
    }
    follower.where = scheduled_sequence::place::waiting;
    queue_.add(follower);
    if (follower.blocks > 0) holding_.emplace(follower.key, &follower);
    i = followers_.erase(i);
  }
}

void scheduler::row_done(sequence_id id, bool draws, bool drew) {
  scheduled_sequence* s = find(id);
  TWILL_ASSERT(s != nullptr && s->in_flight > 0, "a row came back that no step had");
  s->in_flight -= 1;
  if (draws) s->drawing -= 1;
  if (drew) s->delivered += 1;
  settle(*s);
}

void scheduler::settle(scheduled_sequence& s) {
  if (s.leaving == scheduled_sequence::exit::none || s.in_flight > 0) return;
  const bool gone = s.leaving == scheduled_sequence::exit::gone;
  released_.push_back({s.key.id, s.blocks > 0, s.opened, gone});
  if (gone) return remove(s);
  s.leaving = scheduled_sequence::exit::none;
  s.blocks = s.shared = s.computed = 0;
  s.hint = -1;
  s.opened = false;
  if (s.where == scheduled_sequence::place::running)
    return_to_queue(s);
  else
    holding_.erase(s.key);
}

void scheduler::return_to_queue(scheduled_sequence& s) {
  running_.remove(s);
  s.key.rank = std::max(s.key.rank, s.rank_in_queue);
  s.where = scheduled_sequence::place::waiting;
  queue_.add(s);
  // a paused or held sequence makes its place in line available to its client's other sequences
  queue_.refill(s.client);
}

void scheduler::remove(scheduled_sequence& s) {
  switch (s.where) {
  case scheduled_sequence::place::following:
    followers_.erase({s.leader, s.key.id});
    break;
  case scheduled_sequence::place::waiting:
    queue_.remove(s);
    holding_.erase(s.key);
    break;
  case scheduled_sequence::place::running:
    running_.remove(s);
    queue_.refill(s.client);
    break;
  }
  queue_.note_left(s);
  policy_->on_left(s.key.id, s.delivered);
  sequences_.erase(s.key.id);
}

void scheduler::forget_device() {
  for (released_sequence& r : released_)
    r.leased = r.opened = false;
  sequences_.for_each([](sequence_id, scheduled_sequence& s) {
    s.in_flight = s.drawing = s.computed = s.blocks = s.shared = 0;
    s.hint = -1;
    s.opened = false;
  });
  holding_.clear();
  while (!running_.empty()) {
    scheduled_sequence& s = *running_.begin()->second;
    if (s.leaving == scheduled_sequence::exit::gone) {
      released_.push_back({s.key.id, false, false, true});
      remove(s);
    } else {
      s.leaving = scheduled_sequence::exit::none;
      return_to_queue(s);
    }
  }
}

void scheduler::take_released(std::vector<released_sequence>& out) {
  out.clear();
  out.swap(released_);
}

} // namespace twill::actors
