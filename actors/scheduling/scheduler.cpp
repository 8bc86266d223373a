#include "actors/scheduling/scheduler.hpp"

#include <algorithm>

#include "config/base/assert.hpp"

namespace twill::actors {

namespace {
/// Of prompts that are looked up for one plan: bounds the time that a long queue takes.
constexpr std::int64_t most_blocks_looked_up = 4096;
} // namespace

/// What is left of a step while it is being filled, and what it lacked.
struct scheduler::budget {
  std::int32_t tokens = 0;
  std::int64_t blocks = 0;
  std::int64_t missing_blocks = 0; ///< that decodes asked for in vain
  sequence_id oldest_starved = 0;  ///< the first decode without a block
  std::int64_t head_missing = 0;   ///< that the first of the queue asked for in vain
  sequence_id head = 0;
  bool full = false; ///< someone waits only because the running set is full
};

scheduler::scheduler(const plan_limits& limits) : limits_(limits) {
  TWILL_ASSERT(limits.max_step_tokens > 0 && limits.max_running > 0 && limits.block_tokens > 0,
               "plan limits must be positive");
  limits_.max_running = std::min(limits.max_running, limits.max_step_tokens);
}

std::int32_t scheduler::blocks_for(std::int32_t tokens) const {
  return (tokens + limits_.block_tokens - 1) / limits_.block_tokens;
}

scheduler::sequence* scheduler::find(sequence_id id, table** where) {
  for (table* t : {&running_, &waiting_, &held_}) {
    if (auto i = t->find(id); i != t->end()) {
      if (where != nullptr) *where = t;
      return &i->second;
    }
  }
  return nullptr;
}

void scheduler::add(const new_sequence& added) {
  TWILL_ASSERT(added.prompt_tokens > 0 && added.max_new > 0,
               "a sequence needs a prompt and an output");
  sequence s;
  s.leader = added.leader;
  s.prompt = added.prompt_tokens;
  s.max_new = added.max_new;
  (added.leader == 0 ? waiting_ : held_).emplace(added.id, s);
}

void scheduler::leave(sequence_id id) {
  sequence* s = find(id);
  if (s == nullptr) return;
  s->leaving = sequence::exit::gone;
  settle(id);
}

void scheduler::pause(sequence_id id) {
  if (sequence* s = find(id)) s->paused = true;
}

void scheduler::resume(sequence_id id) {
  if (sequence* s = find(id)) s->paused = false;
}

void scheduler::candidates(std::vector<sequence_id>& out) const {
  out.clear();
  if (!limits_.prefix_cache) return;
  auto room = static_cast<std::size_t>(limits_.max_running);
  room -= std::min(room, running_.size());
  std::int64_t blocks = 0;
  for (const auto& [id, s] : waiting_) {
    if (room == 0 || blocks >= most_blocks_looked_up) return;
    if (s.paused) continue;
    --room;
    if (s.blocks > 0) continue;
    blocks += blocks_for(s.known());
    out.push_back(id);
  }
}

void scheduler::plan(std::int64_t free_blocks, decision& out, std::span<const prefix_hit> hits) {
  out.opened.clear();
  out.rows.clear();
  out.reuses.clear();
  out.grows.clear();
  out.forks.clear();
  out.preempted = 0;
  budget left{limits_.max_step_tokens, free_blocks};
  plan_decodes(left, out);
  if (!out.rows.empty() && limits_.mixed_prompt_tokens > 0)
    left.tokens = std::min(left.tokens, limits_.mixed_prompt_tokens);
  plan_prefills(left, out);
  // While a running sequence starves, nobody new may take the blocks that come free.
  if (left.missing_blocks == 0) admit(left, hits, out);
  // Followers are for the next step at the earliest, when their leader's KV is there.
  for (sequence_id leader : prompts_planned_)
    fork_followers(leader, out);
  prompts_planned_.clear();
  make_room(left, out);
}

void scheduler::plan_decodes(budget& left, decision& out) {
  for (auto& [id, s] : running_) {
    if (left.tokens == 0) return;
    if (!s.schedulable() || s.remaining() != 1) continue;
    const std::int32_t need = blocks_for(s.computed + 1) - s.blocks;
    if (need > left.blocks || (need > 0 && left.missing_blocks > 0)) {
      if (left.oldest_starved == 0) left.oldest_starved = id;
      left.missing_blocks += need;
      continue;
    }
    if (need > 0) {
      s.blocks += need;
      left.blocks -= need;
      out.grows.push_back({id, need});
    }
    add_row(id, s, 1, out);
    left.tokens -= 1;
  }
}

void scheduler::plan_prefills(budget& left, decision& out) {
  for (auto& [id, s] : running_) {
    if (left.tokens == 0) return;
    if (!s.schedulable() || s.remaining() <= 1) continue;
    const std::int32_t n = std::min(s.remaining(), left.tokens);
    add_row(id, s, n, out);
    left.tokens -= n;
  }
}

void scheduler::admit(budget& left, std::span<const prefix_hit> hits, decision& out) {
  for (auto i = waiting_.begin(); i != waiting_.end() && left.tokens > 0;) {
    auto next = std::next(i);
    const sequence_id id = i->first;
    sequence& s = i->second;
    if (s.paused) {
      i = next;
      continue;
    }
    if (running_.size() >= static_cast<std::size_t>(limits_.max_running)) {
      left.full = true;
      return;
    }
    prefix_hit hit;
    if (limits_.prefix_cache && s.blocks == 0) {
      if (hits.empty()) return; // not looked up yet: in the next plan
      hit = hits.front();
      TWILL_ASSERT(hit.id == id, "hits come in the order of the candidates");
      hits = hits.subspan(1);
    }
    // One spare block for each running sequence, so that an admission does not cause a preemption
    // in the very next steps.
    const std::int64_t need = blocks_for(s.known()) - s.blocks - hit.n_blocks;
    const std::int64_t taken = need + hit.n_evictable;
    const std::int64_t spare = static_cast<std::int64_t>(running_.size());
    if (taken + spare > left.blocks) {
      left.head = id;
      left.head_missing = taken + spare - left.blocks;
      return;
    }
    left.blocks -= taken;
    open(id, s, hit, out);
    running_.insert(waiting_.extract(i));
    const std::int32_t n = std::min(s.remaining(), left.tokens);
    add_row(id, s, n, out);
    left.tokens -= n;
    i = next;
  }
}

void scheduler::open(sequence_id id, sequence& s, const prefix_hit& hit, decision& out) {
  if (hit.n_blocks > 0) {
    s.blocks = hit.n_blocks;
    s.computed = hit.n_blocks * limits_.block_tokens;
    TWILL_ASSERT(s.remaining() > 0, "a hit leaves a token whose logits are drawn from");
    out.reuses.push_back(id);
  }
  if (const std::int32_t need = blocks_for(s.known()) - s.blocks; need > 0) {
    out.grows.push_back({id, need});
    s.blocks += need;
  }
  s.opened = true;
  out.opened.push_back(id);
}

void scheduler::add_row(sequence_id id, sequence& s, std::int32_t n_tokens, decision& out) {
  planned_row row{id, s.computed, n_tokens, n_tokens == s.remaining()};
  const bool prompt_ends = s.computed < s.prompt && s.computed + n_tokens >= s.prompt;
  s.computed += n_tokens;
  s.in_flight += 1;
  if (row.draws) s.drawing += 1;
  out.rows.push_back(row);
  if (prompt_ends && s.leader == 0) prompts_planned_.push_back(id);
}

void scheduler::fork_followers(sequence_id leader, decision& out) {
  // At least one prompt token is left to each follower: its logits yield the first draw.
  const std::int32_t full = (running_.at(leader).prompt - 1) / limits_.block_tokens;
  for (auto i = held_.upper_bound(leader); i != held_.end() && i->second.leader == leader;) {
    auto next = std::next(i);
    sequence& follower = i->second;
    if (full > 0) {
      follower.blocks = follower.shared = full;
      follower.computed = full * limits_.block_tokens;
      out.forks.push_back({i->first, leader, full});
    }
    waiting_.insert(held_.extract(i));
    i = next;
  }
}

void scheduler::make_room(const budget& left, decision& out) {
  if (left.missing_blocks == 0 && left.head_missing == 0 && !left.full) return;
  // Candidates, in the order in which they give way: paused ones, then the youngest.
  std::vector<sequence_id> paused, younger;
  std::int64_t incoming = 0; // blocks that come back anyway
  bool leaving = false;
  for (const auto& [id, s] : running_) {
    if (s.leaving != sequence::exit::none) {
      incoming += s.blocks - s.shared;
      leaving = true;
    } else if (s.paused) {
      paused.push_back(id);
    } else if (left.missing_blocks > 0 && id >= left.oldest_starved) {
      younger.push_back(id);
    }
  }
  const sequence_id first = left.missing_blocks > 0 ? left.oldest_starved : left.head + 1;
  if (left.missing_blocks > 0 || left.head_missing > 0) {
    for (const auto& [id, s] : waiting_) {
      if (s.blocks == 0) continue;
      if (s.paused)
        paused.push_back(id);
      else if (id >= first)
        younger.push_back(id);
    }
  }
  std::sort(paused.rbegin(), paused.rend());
  std::sort(younger.rbegin(), younger.rend());
  if (left.full) {
    if (!leaving && !paused.empty()) {
      preempt(paused.front(), *find(paused.front()));
      ++out.preempted;
    }
    return;
  }
  std::int64_t need = std::max(left.missing_blocks, left.head_missing) - incoming;
  paused.insert(paused.end(), younger.begin(), younger.end());
  for (sequence_id id : paused) {
    if (need <= 0) return;
    sequence& s = *find(id);
    need -= s.blocks - s.shared;
    preempt(id, s);
    ++out.preempted;
  }
}

void scheduler::preempt(sequence_id id, sequence& s) {
  s.leaving = sequence::exit::preempted;
  settle(id);
}

void scheduler::row_done(sequence_id id, bool draws, bool drew) {
  sequence* s = find(id);
  TWILL_ASSERT(s != nullptr && s->in_flight > 0, "a row came back that no step had");
  s->in_flight -= 1;
  if (draws) s->drawing -= 1;
  if (drew) s->delivered += 1;
  settle(id);
}

void scheduler::settle(sequence_id id) {
  table* where = nullptr;
  sequence* s = find(id, &where);
  if (s->leaving == sequence::exit::none || s->in_flight > 0) return;
  const bool gone = s->leaving == sequence::exit::gone;
  released_.push_back({id, s->blocks > 0, s->opened, gone});
  if (gone) {
    where->erase(id);
    return;
  }
  s->leaving = sequence::exit::none;
  s->blocks = s->shared = s->computed = 0;
  s->opened = false;
  if (where == &running_) waiting_.insert(running_.extract(id));
}

void scheduler::forget_device() {
  for (released& r : released_)
    r.leased = r.opened = false;
  for (table* t : {&running_, &waiting_}) {
    for (auto& [id, s] : *t) {
      s.in_flight = s.drawing = s.computed = s.blocks = s.shared = 0;
      s.opened = false;
    }
  }
  while (!running_.empty()) {
    auto node = running_.extract(running_.begin());
    const bool gone = node.mapped().leaving == sequence::exit::gone;
    node.mapped().leaving = sequence::exit::none;
    if (gone)
      released_.push_back({node.key(), false, false, true});
    else
      waiting_.insert(std::move(node));
  }
}

void scheduler::take_released(std::vector<released>& out) {
  out.clear();
  out.swap(released_);
}

} // namespace twill::actors
