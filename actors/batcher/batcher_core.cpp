#include "actors/batcher/batcher_core.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "actors/scheduling/fair_policy.hpp"
#include "config/base/assert.hpp"

namespace twill::actors {

namespace {
double in_seconds(steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

/// A gap of this length between two tokens, seen by `n` sequences.
struct token_gap {
  steady_clock::duration length;
  std::uint64_t n = 0;
};

/// Most sequences drew their previous tokens in one step, so consecutive gaps are mostly equal.
void note_gap(std::vector<token_gap>& gaps, steady_clock::duration length) {
  if (gaps.empty() || gaps.back().length != length) gaps.push_back({length, 0});
  ++gaps.back().n;
}

std::unique_ptr<admission_policy> make_policy(bool fair) {
  if (fair) return std::make_unique<fair_policy>();
  return std::make_unique<fcfs_policy>();
}
} // namespace

batcher_core::batcher_core(const batcher_limits& limits, stats_board& stats, session_sink& sessions,
                           tier_sink* tiers, batcher_observer& observer)
    : stats_(stats), sessions_(sessions), tiers_(tiers), observer_(observer),
      scheduler_(limits.plan, make_policy(limits.fair)),
      prefixes_({limits.plan.prefix_cache, limits.plan.block_tokens, limits.shareable_length}),
      fetches_(limits.plan.block_tokens) {
  set_limits(limits);
  grant_.free_blocks = limits.total_blocks;
  publish_gauges();
}

void batcher_core::set_limits(const batcher_limits& limits) {
  limits_ = limits;
  limits_.plan.max_running = std::min(limits.plan.max_running, limits.plan.max_step_tokens);
  if (limits.gap_target_s > 0)
    prefill_budget_.emplace(limits.plan.max_step_tokens, limits.gap_target_s);
}

// Orders.

/// Why the request finds no place in the queue or in its client's part of the queue; nullopt: it
/// does. Requests that the running set can take at once do not count against the queue, so a burst
/// that will run at once is not refused.
std::optional<request_error> batcher_core::no_room(const submit_prompt& prompt,
                                                   std::uint64_t client) const {
  const std::int32_t running = static_cast<std::int32_t>(scheduler_.running());
  const std::int32_t may_start = std::max(limits_.plan.max_running - running, 0);
  const std::int32_t bound = limits_.max_queued + may_start;
  if (groups_.size() >= static_cast<std::size_t>(bound) && groups_.n_waiting() >= bound)
    return request_error{
        errc::queue_full,
        "the queue is full (" + std::to_string(groups_.n_waiting()) + " waiting); retry later", ""};
  const client_limits& own = prompt.limits;
  if (own.max_queued == 0) return std::nullopt;
  std::int32_t may_start_own = may_start;
  if (own.max_running > 0)
    may_start_own =
        std::min(may_start, std::max(own.max_running - scheduler_.running_of(client), 0));
  const std::int32_t waiting = groups_.n_waiting_of(client);
  if (waiting < own.max_queued + may_start_own) return std::nullopt;
  return request_error{
      errc::queue_full,
      std::to_string(waiting) +
          " requests of this tenant wait, which is the most (`tenants.max_queued`); "
          "retry later",
      ""};
}

void batcher_core::refuse(request_id request, const request_error& why) {
  observer_.ended(request, why);
  sessions_.failed(request, why);
  sessions_.forgotten(request);
}

void batcher_core::submit(const submit_prompt& prompt) {
  observer_.arrived(prompt);
  const std::uint64_t client = std::hash<std::string>{}(prompt.client);
  if (const auto why = no_room(prompt, client)) return refuse(prompt.request, *why);
  // The session checked the request against the sizes that the executor had then; they may have
  // changed since.
  if (const auto why = misfit(prompt.spec)) return refuse(prompt.request, *why);
  const group& added = groups_.add(prompt, prompt.limits.max_queued > 0 ? client : 0);
  observer_.queued(added.first, prompt);
  sequence_id leader = 0;
  for (std::int32_t choice = 0; choice < prompt.n_choices; ++choice) {
    if (prompt.is_over(choice)) continue;
    new_sequence arrived{added.first + static_cast<sequence_id>(choice), leader,
                         static_cast<std::int32_t>(prompt.spec.prompt->size()), prompt.spec.max_new,
                         choice == 0 && prompt.spec.needs_all_rows()};
    if (leader == 0) leader = arrived.id;
    arrived.made = static_cast<std::int32_t>(prompt.made_of(choice).size());
    arrived.client = client;
    arrived.weight = prompt.limits.weight;
    arrived.most_running = prompt.limits.max_running;
    arrived.priority = prompt.priority;
    scheduler_.add(arrived);
  }
  sessions_.queued(prompt.request);
}

void batcher_core::waited_too_long(request_id request) {
  observer_.waited_too_long(request);
  const group* g = groups_.find(request);
  if (g == nullptr || g->scheduled) return;
  fail(request, actors::waited_too_long::error());
}

void batcher_core::finish_choice(request_id request, std::int32_t choice) {
  observer_.choice_finished(request, choice);
  const group* g = groups_.find(request);
  if (g == nullptr) return;
  const sequence_id id = g->first + static_cast<sequence_id>(choice);
  if (sequence* s = groups_.find_sequence(id)) {
    s->finished = true;
    leave(id);
  }
}

/// Ends a sequence. Results for it from steps under way are dropped.
void batcher_core::leave(sequence_id id) {
  if (scheduler_.leave(id)) departed_.push_back(id);
}

skip_sequences batcher_core::take_departed() {
  return {pipeline_.generation(), std::exchange(departed_, {})};
}

template <class F>
void batcher_core::for_each_choice(request_id request, F&& apply) {
  const group* g = groups_.find(request);
  if (g == nullptr) return;
  for (std::int32_t choice = 0; choice < g->n_choices; ++choice)
    apply(g->first + static_cast<sequence_id>(choice));
}

void batcher_core::release(request_id request) {
  observer_.released(request);
  release_choices(request);
}

void batcher_core::release_choices(request_id request) {
  for_each_choice(request, [this](sequence_id id) { leave(id); });
  groups_.mark_released(request);
}

void batcher_core::pause(request_id request) {
  observer_.paused(request);
  for_each_choice(request, [this](sequence_id id) { scheduler_.pause(id); });
  groups_.set_paused(request, true);
}

void batcher_core::resume(request_id request) {
  observer_.resumed(request);
  for_each_choice(request, [this](sequence_id id) { scheduler_.resume(id); });
  groups_.set_paused(request, false);
}

void batcher_core::executor_ready(std::uint64_t generation, const batcher_limits& limits) {
  observer_.executor_ready(generation, limits);
  if (pipeline_.has_executor()) lose_executor();
  pipeline_.executor_ready(generation);
  reset_blocks_ = reset_blocks_ || limits.total_blocks != limits_.total_blocks;
  set_limits(limits);
  scheduler_.set_limits(limits.plan);
  refit();
}

/// Why a sequence cannot end within the KV cache; nullopt if it can. The last drawn token needs no
/// place in the cache, because no step reads it.
std::optional<request_error> batcher_core::misfit(const sequence_spec& spec) const {
  const std::int64_t capacity = limits_.total_blocks * limits_.plan.block_tokens + 1;
  const std::int64_t needs = static_cast<std::int64_t>(spec.prompt->size()) + spec.max_new;
  if (limits_.total_blocks == 0 || needs <= capacity) return std::nullopt;
  return request_error{
      errc::too_large,
      "the prompt and `max_tokens` together must be <= " + std::to_string(capacity) +
          " tokens (the KV cache after a restart of the executor), got " + std::to_string(needs),
      "max_tokens"};
}

/// Shortens or fails the requests that no longer fit, after a load that left less memory for the KV
/// cache.
void batcher_core::refit() {
  const std::int64_t capacity = limits_.total_blocks * limits_.plan.block_tokens + 1;
  for (request_id request : groups_.requests()) {
    for_each_choice(request, [&](sequence_id id) {
      sequence* s = groups_.find_sequence(id);
      if (s == nullptr) return;
      const auto why = misfit(s->spec);
      if (!why) return;
      const std::int64_t left = capacity - static_cast<std::int64_t>(s->spec.prompt->size());
      const bool asked = s->spec.sampling->max_tokens >= 0;
      if (asked || left <= static_cast<std::int64_t>(s->output.size())) return fail(request, *why);
      s->spec.max_new = static_cast<std::int32_t>(left);
      scheduler_.shorten(id, s->spec.max_new);
    });
  }
}

void batcher_core::fail(request_id request, const request_error& why) {
  if (groups_.find(request) == nullptr) return;
  observer_.ended(request, why);
  sessions_.failed(request, why);
  release_choices(request);
}

void batcher_core::lose_executor() {
  pipeline_.executor_lost();
  prefixes_.forget_device();
  departed_.clear();
  spills_.clear();
  copies_.clear();
  for (const sequence_id id : fetches_.end_all())
    scheduler_.unhold(id);
  scheduler_.forget_device();
  groups_.forget_device();
  reset_blocks_ = true;
}

// Planning.

batcher_core::action batcher_core::next(steady_clock::time_point now) {
  TWILL_ASSERT(!awaiting_grant_, "the batcher waits for the allocator's answer");
  switch (std::exchange(phase_, phase::begin)) {
  case phase::schedule:
    // Sequences that now wait for a fetch are no longer candidates, and other sequences may have
    // moved up in the queue.
    if (std::exchange(fetches_began_, false))
      if (auto queries = look_up()) return ask(std::move(*queries), phase::schedule);
    return schedule(now);
  case phase::send:
    return send(now);
  case phase::begin:
    break;
  }
  auto drops = take_drops();
  if (pipeline_.has_room())
    if (auto queries = look_up()) {
      if (drops) drops->queries = std::move(queries->queries);
      return ask(drops ? std::move(*drops) : std::move(*queries), phase::schedule);
    }
  if (drops) return ask(std::move(*drops), phase::begin);
  if (pipeline_.has_room()) return schedule(now);
  publish_gauges();
  return rest{};
}

batcher_core::action batcher_core::ask(kv_change change, phase then) {
  phase_ = then;
  awaiting_grant_ = true;
  change.prefix_inserts = prefixes_.take_inserts();
  return action{std::move(change)};
}

void batcher_core::granted(kv_grant grant, steady_clock::time_point now) {
  TWILL_ASSERT(awaiting_grant_, "the allocator answers each change once");
  if (tiers_ != nullptr) observer_.tiers_answered(grant, now);
  awaiting_grant_ = false;
  prefixes_.take_matches(std::move(grant.matches));
  for (block_spill& s : grant.spills)
    spills_.push_back(std::move(s));
  grant.spills.clear();
  grant_ = std::move(grant);
  if (tiers_ != nullptr)
    prefixes_.leave_out([&](const prefix_match& m) { return starts_fetch(m, now); });
}

/// Starts a fetch if a tier has blocks that follow those on the device. Returns whether the
/// sequence now waits for the fetch.
bool batcher_core::starts_fetch(const prefix_match& match, steady_clock::time_point now) {
  // a second fetch is for blocks that were evicted again before the admission was computed
  constexpr std::int32_t most_fetches = 2;
  auto& fetched = groups_.at(match.id).fetched;
  const auto n_blocks = static_cast<std::int32_t>(match.blocks.size());
  if (fetched.after(n_blocks) > 0) return false;
  // If the sequence cannot be admitted now, its blocks on the device could be evicted while it
  // waits for the fetch.
  const std::int32_t width = limits_.plan.block_tokens;
  const std::int64_t all = (groups_.at(match.id).n_known() + width - 1) / width;
  if (all - n_blocks + match.n_evictable + static_cast<std::int64_t>(scheduler_.running()) >
      grant_.free_blocks)
    return false;
  fetched.blocks.clear();
  if (match.tier_keys.empty() || fetched.n_fetches >= most_fetches ||
      !fetches_.speeds.worth_fetching(match.tier_keys.size()))
    return false;
  ++fetched.n_fetches;
  fetched.first = n_blocks;
  fetched.fetch_id = fetches_.begin(match.id, now, match.tier_keys.size());
  scheduler_.hold(match.id);
  fetches_began_ = true;
  // The tiers' own deadline is earlier than `patience`, so they answer with the blocks that are
  // there before the fetch is given up, unless they hang.
  const auto patience = fetches_.speeds.patience(match.tier_keys.size());
  tiers_->fetch({fetched.fetch_id, match.tier_keys, now + patience * 3 / 4}, patience);
  return true;
}

void batcher_core::fetched(blocks_fetched answer, steady_clock::time_point now) {
  observer_.fetched(answer.fetch_id, answer.blocks.size(), now);
  const tier_client::fetch ended = fetches_.end(answer.fetch_id);
  if (ended.id == 0) return;
  if (answer.given_up)
    fetches_.speeds.note_given_up(ended.n_blocks, in_seconds(now - ended.asked));
  else
    fetches_.speeds.note_fetch(answer.blocks.size(), answer.seconds);
  if (sequence* s = groups_.find_sequence(ended.id)) s->fetched.blocks = std::move(answer.blocks);
  scheduler_.unhold(ended.id);
}

std::optional<kv_change> batcher_core::take_drops() {
  std::vector<released_sequence> released;
  scheduler_.take_released(released);
  kv_change change;
  change.reset = std::exchange(reset_blocks_, false);
  change.n_blocks = static_cast<std::int32_t>(limits_.total_blocks);
  for (const released_sequence& r : released) {
    if (r.leased) change.drops.push_back(r.id);
    if (r.opened) pipeline_.close(r.id);
    if (r.gone) observer_.forgotten(r.id);
    if (const auto over = groups_.release(r)) sessions_.forgotten(*over);
  }
  if (!change.reset && change.drops.empty()) return std::nullopt;
  return change;
}

std::optional<kv_change> batcher_core::look_up() {
  std::vector<sequence_id> candidates;
  scheduler_.candidates(candidates);
  if (candidates.empty()) return std::nullopt;
  kv_change change;
  change.queries = prefixes_.queries(candidates, groups_);
  return change;
}

batcher_core::action batcher_core::schedule(steady_clock::time_point now) {
  if (prefill_budget_) scheduler_.set_mixed_prompt_tokens(prefill_budget_->prompt_tokens());
  scheduler_.plan(grant_.free_blocks, decision_, prefixes_.hits(groups_));
  if (decision_.preempted > 0) {
    stats_.update(
        [&](engine_stats& s) { s.preemptions += static_cast<std::uint64_t>(decision_.preempted); });
  }
  kv_change change;
  change.reuses = prefixes_.begin_reused(decision_.reuses, groups_);
  if (decision_.rows.empty()) return rest_or_drop();
  change.grows = decision_.grows;
  change.forks = decision_.forks;
  change.copies = decision_.copies;
  if (!change.grows.empty() || !change.forks.empty() || !change.copies.empty())
    return ask(std::move(change), phase::send);
  grant_.blocks.clear();
  return send(now);
}

/// The action when no row can be scheduled: release the blocks that a preemption has freed, or
/// rest.
batcher_core::action batcher_core::rest_or_drop() {
  if (auto drops = take_drops()) return ask(std::move(*drops), phase::begin);
  publish_gauges();
  if (spills_.empty()) return rest{};
  step_plan copies; // a plan without rows, only with copies of blocks that are to be kept
  copies.spills = std::exchange(spills_, {});
  return send_plan(std::move(copies), 0);
}

batcher_core::action batcher_core::send(steady_clock::time_point now) {
  return send_plan(build_plan(now), decision_.preempted);
}

step_plan_ptr batcher_core::send_plan(step_plan plan, std::int32_t preempted) {
  step_plan_ptr sent = pipeline_.send(std::move(plan));
  observer_.planned(*sent, preempted);
  return sent;
}

step_plan batcher_core::build_plan(steady_clock::time_point now) {
  step_plan plan;
  for (sequence_id id : decision_.opened) {
    sequence& s = groups_.at(id);
    if (s.scheduled == steady_clock::time_point{}) {
      s.scheduled = now;
      if (sequence_groups::group_of(s).leader == id)
        note_first_admission(s, s.fetched.after(static_cast<std::int32_t>(s.blocks.size())));
    }
    groups_.note_opened(s);
    plan.opens.push_back({id, s.spec, s.output, s.blocks});
  }
  auto granted = grant_.blocks.begin();
  for (const lease_growth& g : decision_.grows) {
    auto& blocks = groups_.at(g.id).blocks;
    blocks.insert(blocks.end(), granted, granted + g.n_blocks);
    granted += g.n_blocks;
  }
  for (const lease_fork& f : decision_.forks) {
    const auto& source = groups_.at(f.from).blocks;
    groups_.at(f.id).blocks.assign(source.begin(), source.begin() + f.n_blocks);
  }
  plan.copies = std::exchange(copies_, {});
  for (std::size_t i = 0; i < decision_.copies.size(); ++i) {
    const lease_copy& c = decision_.copies[i];
    const auto column = static_cast<std::size_t>(c.column);
    copies_.push_back({groups_.at(c.from).blocks[column], grant_.copies[i]});
    groups_.at(c.id).blocks.push_back(grant_.copies[i]);
  }
  for (sequence_id id : decision_.opened)
    add_loads(groups_.at(id), plan);
  plan.spills = std::exchange(spills_, {});
  plan.grows = decision_.grows;
  plan.blocks = std::move(grant_.blocks);
  plan.rows = decision_.rows;
  return plan;
}

/// Adds the loads of fetched blocks to the plan. They go into the sequence's blocks after those
/// that were on the device; the first of them is block s.n_inserted, the first block of this lease
/// that the prefix tree does not have.
void batcher_core::add_loads(sequence& s, step_plan& plan) {
  const std::int32_t n_loaded = s.fetched.after(s.n_inserted);
  for (std::int32_t i = s.n_inserted; i < s.n_inserted + n_loaded; ++i)
    plan.loads.push_back({s.blocks[static_cast<std::size_t>(i)],
                          s.fetched.blocks[static_cast<std::size_t>(i - s.fetched.first)]});
  s.fetched = {};
}

void batcher_core::note_first_admission(const sequence& s, std::int32_t n_loaded) {
  if (!limits_.plan.prefix_cache) return;
  // Output that an earlier run has drawn may be cached as well; it is not part of the prompt.
  const std::size_t cached = std::min((s.blocks.size() + static_cast<std::size_t>(n_loaded)) *
                                          static_cast<std::size_t>(limits_.plan.block_tokens),
                                      s.spec.prompt->size());
  groups_.group_of(s).cached_tokens = static_cast<std::int32_t>(cached);
  stats_.update([&](engine_stats& stats) {
    stats.prefix_cache_queries += s.spec.prompt->size();
    stats.prefix_cache_hits += cached;
  });
}

// Results.

void batcher_core::step_done(const step_result& result, steady_clock::time_point now) {
  const step_plan_ptr plan = pipeline_.take(result);
  if (!plan) return observer_.ignored_step();
  observer_.step_done(*plan, result, now);
  if (tiers_ != nullptr) note_copies(*plan, result);
  if (plan->rows.empty()) return;
  std::vector<token_gap> gaps;
  std::uint64_t prompt_tokens = 0;
  std::int32_t decode_tokens = 0, prefill_tokens = 0;
  keep_scores(result);
  auto drawn = result.drawn.begin(); // `drawn` and `skipped` are both in the order of rows
  auto skipped = result.skipped.begin();
  for (std::size_t i = 0; i < plan->rows.size(); ++i) {
    const planned_row& row = plan->rows[i];
    expect_rows(*plan, i);
    const bool drew = drawn != result.drawn.end() && drawn->id == row.id;
    const bool was_skipped = skipped != result.skipped.end() && *skipped == row.id;
    if (was_skipped) ++skipped;
    // A row that should have drawn a token and did not belongs to a sequence that ended in the step
    // before.
    if (was_skipped || (row.draws && !drew)) {
      scheduler_.row_done(row.id, row.draws, false);
      continue;
    }
    (row.n_tokens == 1 ? decode_tokens : prefill_tokens) += row.n_tokens;
    sequence& s = groups_.at(row.id);
    prefixes_.note_computed(row.id, s, row.first_position + row.n_tokens);
    if (sequence_groups::group_of(s).scores && s.spec.scores_prompt()) deliver_scores(s, row);
    if (drew) {
      s.output.push_back(drawn->token);
      if (s.last_token != steady_clock::time_point{}) {
        note_gap(gaps, now - s.last_token);
      } else {
        group& owner = sequence_groups::group_of(s);
        owner.drew = true;
        if (owner.leader == row.id) prompt_tokens += s.spec.prompt->size();
      }
      s.last_token = now;
      deliver(row.id, s, *drawn++, result);
    }
    scheduler_.row_done(row.id, row.draws, drew);
  }
  if (decode_tokens + prefill_tokens == 0) return;
  if (prefill_budget_) prefill_budget_->note_step(decode_tokens, prefill_tokens, result.seconds);
  stats_.update([&](engine_stats& s) {
    s.steps += 1;
    s.prompt_tokens += prompt_tokens;
    s.generation_tokens += result.drawn.size() - result.pooled.size();
    s.device_memory_reserved_bytes = result.memory_used_bytes;
    if (result.streamed) s.streamed = result.streamed;
    observe(s.iteration_tokens, static_cast<double>(decode_tokens + prefill_tokens));
    observe(decode_tokens == 0    ? s.prefill_step_seconds
            : prefill_tokens == 0 ? s.decode_step_seconds
                                  : s.mixed_step_seconds,
            result.seconds);
    for (const token_gap& gap : gaps)
      observe(s.inter_token_latency_seconds, in_seconds(gap.length), gap.n);
  });
}

/// Prefetches what the rows after row i need into the CPU cache, because the records of many
/// sequences are scattered over memory.
void batcher_core::expect_rows(const step_plan& plan, std::size_t i) const {
  constexpr std::size_t far = 16, near = 8;
  if (i + far < plan.rows.size()) {
    groups_.prefetch(plan.rows[i + far].id);
    scheduler_.prefetch(plan.rows[i + far].id);
  }
  if (i + near < plan.rows.size()) {
    groups_.expect_sequence(plan.rows[i + near].id);
    scheduler_.expect_sequence(plan.rows[i + near].id);
  }
}

void batcher_core::note_copies(const step_plan& plan, const step_result& result) {
  fetches_.speeds.note_copies(plan.spills.size() + plan.loads.size(), result.copy_seconds);
  std::int32_t prompt_tokens = 0;
  std::size_t n_draws = 0;
  bool decodes = false;
  for (const planned_row& row : plan.rows) {
    prompt_tokens += row.n_tokens;
    n_draws += row.draws ? 1 : 0;
    decodes = decodes || row.n_tokens == 1;
  }
  const bool computed_all = result.skipped.empty() && result.drawn.size() == n_draws;
  if (!decodes && computed_all)
    fetches_.speeds.note_prefill(prompt_tokens, result.seconds - result.copy_seconds);
  if (plan.spills.empty()) return;
  blocks_spilled spilled;
  for (const block_spill& s : plan.spills)
    spilled.blocks.emplace_back(s.identity, s.to);
  tiers_->spilled(std::move(spilled));
}

void batcher_core::keep_scores(const step_result& result) {
  for (const scored_token& scored : result.scored) {
    const sequence* s = groups_.find_sequence(scored.id);
    if (s == nullptr) continue;
    const auto& scores = groups_.group_of(*s).scores;
    if (!scores) continue; // the scores were already delivered, before a preemption
    prompt_score& score = scores->at(static_cast<std::size_t>(scored.position) - 1);
    const auto first = result.top.begin() + scored.first_top;
    score.logprob = scored.logprob;
    score.top.assign(first, first + scored.n_top);
  }
}

/// Delivers the scores to the session once the step with the prompt's last token is done.
void batcher_core::deliver_scores(const sequence& s, const planned_row& row) {
  group* owner = groups_.find(s.request);
  const auto computed = static_cast<std::size_t>(row.first_position + row.n_tokens);
  if (owner == nullptr || !owner->scores || computed < s.spec.prompt->size()) return;
  sessions_.scored(s.request, {std::move(owner->scores)});
  owner->scores = nullptr;
}

void batcher_core::deliver(sequence_id id, sequence& s, const drawn_token& drawn,
                           const step_result& result) {
  // Drops a token of a step that was prepared before the sequence's end was known.
  const group& owner = sequence_groups::group_of(s);
  if (s.finished || owner.released) return;
  if (drawn.no_allowed_token)
    return fail(
        s.request,
        {errc::executor_failed,
         "the output cannot go on: the vocabulary of the model has no token that its grammar "
         "allows here, or the grammar is so ambiguous that finding one takes too long; ask for "
         "another form of the output",
         ""});
  if (s.spec.is_pooled()) {
    s.finished = true;
    scheduler_.leave(id);
    const auto& values = result.pooled.at(static_cast<std::size_t>(drawn.first_top));
    return sessions_.pooled(s.request, {values, s.scheduled, owner.cached_tokens});
  }
  token_ready ready;
  ready.choice = s.choice;
  ready.token = drawn.token;
  ready.stopped = drawn.stopped;
  ready.length = !drawn.stopped && s.output.size() >= static_cast<std::size_t>(s.spec.max_new);
  ready.logprob = drawn.logprob;
  const auto first = result.top.begin() + drawn.first_top;
  ready.top.assign(first, first + drawn.n_top);
  ready.scheduled = s.scheduled;
  ready.cached_tokens = owner.cached_tokens;
  if (ready.stopped || ready.length) {
    s.finished = true;
    scheduler_.leave(id);
  }
  sessions_.token(s.request, std::move(ready));
}

void batcher_core::step_failed(std::uint64_t generation, const std::string& detail,
                               bool device_is_lost) {
  if (generation != pipeline_.generation()) return observer_.ignored_step();
  observer_.step_failed(generation);
  if (const step_plan_ptr failed = pipeline_.oldest()) {
    std::set<request_id> lost;
    for (const planned_row& row : failed->rows)
      lost.insert(groups_.at(row.id).request);
    for (request_id request : lost)
      if (device_is_lost)
        fail(request, request_error::lost_with_device());
      else if (!may_compute_again(request))
        fail(request,
             {errc::executor_failed,
              "the step that computed this request failed (" + detail + "); retry the request",
              ""});
  }
  lose_executor();
}

/// A request may be computed again after its first failed step only. So a request that itself makes
/// steps fail ends with the second one.
bool batcher_core::may_compute_again(request_id request) {
  group* g = groups_.find(request);
  return g != nullptr && g->n_lost++ == 0 && !g->drew;
}

scheduler_snapshot batcher_core::describe(kv_leases leases) const {
  scheduler_snapshot snapshot = std::move(leases.snapshot);
  std::map<sequence_id, scheduler_snapshot::sequence> all;
  groups_.each_sequence([&](sequence_id id, const sequence& s, const group& g) {
    auto& one = all[id];
    one.request = s.request;
    one.choice = s.choice;
    one.tenant = g.tenant;
    one.client_id = g.client_id;
    one.running = scheduler_.is_running(id);
    one.paused = g.paused;
    one.tokens = s.n_known();
    one.max_tokens = static_cast<std::int32_t>(s.spec.prompt->size()) + s.spec.max_new;
  });
  for (auto& lease : leases.leases) {
    const auto found = all.find(lease.id);
    auto& holder = found == all.end() ? snapshot.orphans.emplace_back() : found->second;
    holder.id = lease.id;
    holder.blocks = std::move(lease.blocks);
    holder.n_blocks = lease.n_blocks;
  }
  for (auto& [id, one] : all) {
    one.id = id;
    snapshot.sequences.push_back(std::move(one));
  }
  return snapshot;
}

void batcher_core::publish_gauges() {
  if (pipeline_.n_outstanding() == 0) observer_.rested();
  stats_.update([&](engine_stats& s) {
    s.requests_waiting = groups_.n_waiting() + groups_.n_paused();
    s.requests_running = groups_.n_running();
    s.kv_blocks_total = limits_.total_blocks;
    s.kv_blocks_used = grant_.used_blocks;
    s.kv_block_tokens = limits_.plan.block_tokens;
  });
}

} // namespace twill::actors
