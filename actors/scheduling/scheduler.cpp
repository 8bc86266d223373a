#include "actors/scheduling/scheduler.hpp"

#include <algorithm>

#include "config/base/assert.hpp"

namespace twill::actors {

namespace {
/// The most prompt blocks that are looked up for one plan. The bound limits the time that a long
/// queue takes.
constexpr std::int64_t most_blocks_looked_up = 1024;
} // namespace

/// The resources that are left of a step while it is being filled, and the resources that it
/// lacked.
struct scheduler::budget {
  std::int32_t tokens = 0;
  std::int64_t blocks = 0;
  std::int32_t logit_rows = 0;
  shortage lacking;
};

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

std::int32_t scheduler::blocks_for(std::int32_t tokens) const {
  return (tokens + limits_.block_tokens - 1) / limits_.block_tokens;
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
  known_client& client = clients_[arrived.client];
  if (client.sequences++ == 0)
    client.most_running = arrived.most_running;
  else if (client.most_running != arrived.most_running)
    limit(arrived.client, arrived.most_running);
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
    enqueue(s);
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
  if (waits) dequeue(*s);
  s->paused = paused;
  if (waits) enqueue(*s);
  if (!paused) policy_->on_resumed(id);
}

void scheduler::set_held(sequence_id id, bool held) {
  scheduled_sequence* s = find(id);
  if (s == nullptr || s->held == held) return;
  const bool waits = s->where == scheduled_sequence::place::waiting;
  if (waits) dequeue(*s);
  s->held = held;
  if (waits) enqueue(*s);
}

std::int32_t scheduler::running_of(std::uint64_t client) const {
  const auto found = running_of_.find(client);
  return found == running_of_.end() ? 0 : found->second.running;
}

/// Every sequence enters the queue through this function.
void scheduler::enqueue(scheduled_sequence& s) {
  const bool apart = s.paused || s.held;
  if (apart || !is_limited(s)) {
    (apart ? paused_ : waiting_).emplace(s.key, &s);
    return;
  }
  limited_line& line = limited_[s.client];
  line.held_back.emplace(s.key, &s);
  refill(s.client);
}

/// Every sequence leaves the queue through this function, except by an admission.
void scheduler::dequeue(scheduled_sequence& s) {
  const bool apart = s.paused || s.held;
  if (apart || !is_limited(s)) {
    (apart ? paused_ : waiting_).erase(s.key);
    return;
  }
  limited_line& line = limited_.at(s.client);
  if (line.held_back.erase(s.key) == 0) {
    line.in_line.erase(s.key);
    waiting_.erase(s.key);
  }
  refill(s.client);
}

/// A client's new limit applies to all of its sequences, including those that arrived with another
/// limit.
void scheduler::limit(std::uint64_t client, std::int32_t most_running) {
  std::vector<scheduled_sequence*> waiting;
  sequences_.for_each([&](sequence_id, scheduled_sequence& s) {
    if (s.client == client && s.where == scheduled_sequence::place::waiting) waiting.push_back(&s);
  });
  for (scheduled_sequence* s : waiting)
    dequeue(*s);
  clients_.at(client).most_running = most_running;
  for (scheduled_sequence* s : waiting)
    enqueue(*s);
}

/// Puts a client's first sequences in line, as many as it may still run.
void scheduler::refill(std::uint64_t client) {
  const auto found = limited_.find(client);
  if (found == limited_.end()) return;
  limited_line& line = found->second;
  const auto places =
      static_cast<std::size_t>(std::max(clients_.at(client).most_running - running_of(client), 0));
  const auto hold_back_last = [&] {
    const auto last = std::prev(line.in_line.end());
    waiting_.erase(last->first);
    line.held_back.insert(line.in_line.extract(last));
  };
  const auto put_first = [&] {
    waiting_.insert(*line.held_back.begin());
    line.in_line.insert(line.held_back.extract(line.held_back.begin()));
  };
  while (line.in_line.size() > places)
    hold_back_last();
  while (line.in_line.size() < places && !line.held_back.empty())
    put_first();
  while (!line.in_line.empty() && !line.held_back.empty() &&
         line.held_back.begin()->first < line.in_line.rbegin()->first) {
    hold_back_last();
    put_first();
  }
  if (line.in_line.empty() && line.held_back.empty()) limited_.erase(found);
}

/// Changes the rank of a sequence that was never admitted.
void scheduler::move(const moved_sequence& moved) {
  scheduled_sequence* s = find(moved.id);
  if (s == nullptr) return;
  const bool waits = s->where == scheduled_sequence::place::waiting;
  const bool holds = holding_.erase(s->key) > 0;
  if (waits) dequeue(*s);
  s->key.rank = moved.rank;
  if (waits) enqueue(*s);
  if (holds) holding_.emplace(s->key, s);
}

void scheduler::apply_moves() {
  policy_->take_moved(moves_);
  for (const moved_sequence& moved : moves_)
    move(moved);
  moves_.clear();
}

/// Prompt tokens that the running set still has to compute.
std::int64_t scheduler::prompt_tokens_left() const {
  std::int64_t left = 0;
  for (const auto& [key, s] : running_)
    if (s->schedulable() && s->remaining() > 1) left += s->remaining();
  return left;
}

void scheduler::candidates(std::vector<sequence_id>& out) {
  out.clear();
  apply_moves();
  if (!limits_.prefix_cache || waiting_.empty()) return;
  auto room = static_cast<std::size_t>(limits_.max_running);
  room -= std::min(room, running_.size());
  if (room == 0) return;
  // If the last plan had no blocks for the head of the queue, no other sequence can be admitted
  // before the head.
  if (head_starved_) room = 1;
  // Looks up no more sequences than may fit the step, as far as earlier look-ups tell.
  std::int64_t tokens = limits_.max_step_tokens - prompt_tokens_left();
  std::int64_t blocks = 0;
  for (const auto& [key, s] : waiting_) {
    if (room == 0 || tokens <= 0 || blocks >= most_blocks_looked_up) return;
    --room;
    const std::int32_t cached = s->blocks > 0 ? s->blocks : s->hint;
    tokens -= cached < 0 ? 1 : std::max(s->known() - cached * limits_.block_tokens, 1);
    if (s->blocks > 0) continue;
    blocks += blocks_for(s->known());
    out.push_back(key.id);
  }
}

void scheduler::plan(std::int64_t free_blocks, step_decision& out,
                     std::span<const prefix_hit> hits) {
  out.opened.clear();
  out.rows.clear();
  out.reuses.clear();
  out.grows.clear();
  out.forks.clear();
  out.copies.clear();
  out.preempted = 0;
  apply_moves();
  budget left{limits_.max_step_tokens, free_blocks, limits_.max_logit_rows, {}};
  plan_decodes(left, out);
  if (!out.rows.empty() && limits_.mixed_prompt_tokens > 0)
    left.tokens = std::min(left.tokens, limits_.mixed_prompt_tokens);
  plan_prefills(left, out);
  // While a running sequence lacks blocks, no admission may take the blocks that become free.
  if (left.lacking.decode_blocks == 0) admit(left, hits, out);
  // Followers run in the next step at the earliest, when their leader's KV is computed.
  for (sequence_id leader : prompts_planned_)
    fork_followers(leader, left, out);
  prompts_planned_.clear();
  head_starved_ = left.lacking.head_blocks > 0;
  for (scheduled_sequence* s : choose_preempted(left.lacking, running_, holding_))
    preempt(*s, out);
  if (out.preempted == 0) share_running_set(left.lacking, out);
}

void scheduler::preempt(scheduled_sequence& s, step_decision& out) {
  s.leaving = scheduled_sequence::exit::preempted;
  settle(s);
  ++out.preempted;
}

/// The head of the queue takes the place of a running sequence whose client runs more than its
/// share. The client must be above its share even with one sequence less: with equal weights, it
/// must run at least two more than the head's client. Each sequence is displaced at most once, so
/// that the work lost stays bounded.
void scheduler::share_running_set(const shortage& lacking, step_decision& out) {
  if (!policy_->shares_running_set() || waiting_.empty() || lacking.decode_blocks > 0) return;
  if (!lacking.running_set_full && lacking.head_blocks == 0) return;
  const scheduled_sequence& head = *waiting_.begin()->second;
  const std::int64_t with_head = running_of(head.client) + 1;
  const auto has_too_many = [&](const share& of) {
    return (of.running - 1) * std::int64_t{head.weight} >= with_head * of.weight;
  };
  if (std::none_of(running_of_.begin(), running_of_.end(),
                   [&](const auto& one) { return has_too_many(one.second); }))
    return;
  scheduled_sequence* last = nullptr;
  for (const auto& [key, s] : running_) {
    // a sequence is leaving, so a place becomes free anyway
    if (s->leaving != scheduled_sequence::exit::none) return;
    if (!s->displaced && has_too_many(running_of_.at(s->client))) last = s;
  }
  if (last == nullptr) return;
  last->displaced = true;
  last->rank_in_queue = head.key.rank + 1;
  preempt(*last, out);
}

void scheduler::plan_decodes(budget& left, step_decision& out) {
  for (const auto& [key, s] : running_) {
    if (left.tokens == 0) return;
    if (!s->schedulable() || s->remaining() != 1) continue;
    const std::int32_t need = blocks_for(s->computed + 1) - s->blocks;
    if (need > left.blocks || (need > 0 && left.lacking.decode_blocks > 0)) {
      if (!left.lacking.first_starved) left.lacking.first_starved = key;
      left.lacking.decode_blocks += need;
      continue;
    }
    if (need > 0) {
      s->blocks += need;
      left.blocks -= need;
      out.grows.push_back({key.id, need});
    }
    add_row(*s, 1, left, out);
  }
}

void scheduler::plan_prefills(budget& left, step_decision& out) {
  for (const auto& [key, s] : running_) {
    if (left.tokens == 0) return;
    if (!s->schedulable() || s->remaining() <= 1) continue;
    if (const std::int32_t n = most_tokens(*s, left); n > 0) add_row(*s, n, left, out);
  }
}

void scheduler::admit(budget& left, std::span<const prefix_hit> hits, step_decision& out) {
  for (auto i = waiting_.begin(); i != waiting_.end() && left.tokens > 0;) {
    const auto next = std::next(i);
    const priority_key key = i->first;
    scheduled_sequence& s = *i->second;
    if (running_.size() >= static_cast<std::size_t>(limits_.max_running)) {
      left.lacking.running_set_full = true;
      return;
    }
    if (left.logit_rows == 0) return;
    prefix_hit hit;
    if (limits_.prefix_cache && s.blocks == 0) {
      if (hits.empty()) return; // the sequence was not looked up yet; the next plan may admit it
      hit = hits.front();
      TWILL_ASSERT(hit.id == key.id, "hits come in the order of the candidates");
      hits = hits.subspan(1);
      s.hint = hit.n_blocks + hit.n_loaded;
    }
    // One block for each running sequence stays free, so that the admission does not cause a
    // preemption in the next few steps.
    const std::int64_t need = blocks_for(s.known()) - s.blocks - hit.n_blocks;
    const std::int64_t taken = need + hit.n_evictable;
    const std::int64_t spare = static_cast<std::int64_t>(running_.size());
    if (taken + spare > left.blocks) {
      left.lacking.head = key;
      left.lacking.head_blocks = taken + spare - left.blocks;
      return;
    }
    left.blocks -= taken;
    open(s, hit, out);
    running_.add(key, &s);
    waiting_.erase(i);
    if (is_limited(s)) limited_.at(s.client).in_line.erase(key);
    s.where = scheduled_sequence::place::running;
    holding_.erase(key);
    share& of = running_of_[s.client];
    of.running += 1;
    of.weight = s.weight;
    policy_->on_admitted(key.id);
    add_row(s, most_tokens(s, left), left, out);
    i = next;
  }
}

void scheduler::open(scheduled_sequence& s, const prefix_hit& hit, step_decision& out) {
  if (hit.n_blocks + hit.n_loaded > 0) {
    s.blocks = hit.n_blocks;
    s.computed = (hit.n_blocks + hit.n_loaded) * limits_.block_tokens;
    TWILL_ASSERT(s.remaining() > 0, "a hit leaves a token whose logits are drawn from");
  }
  if (hit.n_blocks > 0) out.reuses.push_back(s.key.id);
  if (const std::int32_t need = blocks_for(s.known()) - s.blocks; need > 0) {
    out.grows.push_back({s.key.id, need});
    s.blocks += need;
  }
  s.opened = true;
  out.opened.push_back(s.key.id);
}

/// Returns the most tokens that a row of the sequence may have. A scored chunk needs as many rows
/// of logits as it has tokens: the last token of a prompt has no score, but its row is drawn from.
std::int32_t scheduler::most_tokens(const scheduled_sequence& s, const budget& left) {
  const std::int32_t n = std::min(s.remaining(), left.tokens);
  return s.scored ? std::min(n, left.logit_rows) : left.logit_rows > 0 ? n : 0;
}

void scheduler::add_row(scheduled_sequence& s, std::int32_t n_tokens, budget& left,
                        step_decision& out) {
  const planned_row row{s.key.id, s.computed, n_tokens, n_tokens == s.remaining()};
  left.tokens -= n_tokens;
  left.logit_rows -= s.scored ? n_tokens : row.draws ? 1 : 0;
  s.computed += n_tokens;
  s.in_flight += 1;
  if (row.draws) s.drawing += 1;
  out.rows.push_back(row);
  // The row may begin after the prompt, if output that an earlier run has drawn is cached.
  if (s.leads && s.computed >= s.prompt) {
    prompts_planned_.push_back(s.key.id);
    s.leads = false;
  }
}

void scheduler::fork_followers(sequence_id leader, budget& left, step_decision& out) {
  // At least one prompt token is left for each follower to compute: its logits yield the follower's
  // first draw.
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
    if (has_part && left.lacking.decode_blocks == 0 &&
        left.blocks > static_cast<std::int64_t>(running_.size())) {
      left.blocks -= 1;
      follower.blocks = full + 1;
      follower.computed = before_last;
      out.copies.push_back({follower.key.id, leader, full});
    }
    follower.where = scheduled_sequence::place::waiting;
    enqueue(follower);
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

void scheduler::leave_running_set(scheduled_sequence& s) {
  if (const auto of = running_of_.find(s.client); --of->second.running == 0) running_of_.erase(of);
}

void scheduler::return_to_queue(scheduled_sequence& s) {
  leave_running_set(s);
  running_.erase(s.key);
  s.key.rank = std::max(s.key.rank, s.rank_in_queue);
  s.where = scheduled_sequence::place::waiting;
  enqueue(s);
  // a paused or held sequence makes its place in line available to its client's other sequences
  refill(s.client);
}

void scheduler::remove(scheduled_sequence& s) {
  switch (s.where) {
  case scheduled_sequence::place::following:
    followers_.erase({s.leader, s.key.id});
    break;
  case scheduled_sequence::place::waiting:
    dequeue(s);
    holding_.erase(s.key);
    break;
  case scheduled_sequence::place::running:
    leave_running_set(s);
    running_.erase(s.key);
    refill(s.client);
    break;
  }
  if (const auto client = clients_.find(s.client); --client->second.sequences == 0)
    clients_.erase(client);
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
