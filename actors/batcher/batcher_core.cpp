#include "actors/batcher/batcher_core.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "actors/batcher/batcher_snapshot.hpp"
#include "actors/scheduling/fair_policy.hpp"
#include "config/base/assert.hpp"

namespace twill::actors {

namespace {
std::unique_ptr<admission_policy> make_policy(bool fair) {
  if (fair) return std::make_unique<fair_policy>();
  return std::make_unique<fcfs_policy>();
}
} // namespace

batcher_core::batcher_core(const batcher_limits& limits, stats_board& stats, session_sink& sessions,
                           tier_sink* tiers, batcher_observer& observer)
    : stats_(stats), sessions_(sessions), observer_(observer),
      scheduler_(limits.plan, make_policy(limits.fair)),
      orders_(groups_, scheduler_, sessions, observer),
      prefixes_({limits.plan.prefix_cache, limits.plan.block_tokens, limits.shareable_length}),
      tiers_(limits.plan.block_tokens, tiers), outputs_(groups_, scheduler_, sessions, orders_) {
  set_limits(limits);
  blocks_.reset(limits.total_blocks);
  publish_gauges();
}

void batcher_core::set_limits(const batcher_limits& limits) {
  limits_ = limits;
  limits_.plan.max_running = std::min(limits.plan.max_running, limits.plan.max_step_tokens);
  if (limits.gap_target_s > 0)
    prefill_budget_.emplace(limits.plan.max_step_tokens, limits.gap_target_s);
}

skip_sequences batcher_core::take_departed() {
  return {pipeline_.generation(), orders_.take_departed()};
}

void batcher_core::executor_ready(std::uint64_t generation, const batcher_limits& limits) {
  observer_.executor_ready(generation, limits);
  if (pipeline_.has_executor()) lose_executor();
  pipeline_.executor_ready(generation);
  const bool reset = change_.reset || limits.total_blocks != limits_.total_blocks;
  set_limits(limits);
  if (reset) reset_blocks();
  request_due_ = true;
  scheduler_.set_limits(limits.plan);
  orders_.refit(limits_);
}

void batcher_core::lose_executor() {
  pipeline_.executor_lost();
  prefixes_.forget_device();
  orders_.forget_departed();
  plans_.forget_device();
  for (const sequence_id id : tiers_.end_all())
    scheduler_.unhold(id);
  scheduler_.forget_device();
  groups_.forget_device();
  reset_blocks();
}

/// Orders the allocator to end all leases. From now on it has limits_.total_blocks blocks, of which
/// none is granted.
void batcher_core::reset_blocks() {
  change_ = {};
  change_.reset = true;
  change_.n_blocks = static_cast<std::int32_t>(limits_.total_blocks);
  blocks_.reset(limits_.total_blocks);
  if (request_ == request_state::asked) request_ = request_state::ignored;
}

// Planning.

step_plan_ptr batcher_core::plan(steady_clock::time_point now) {
  TWILL_ASSERT(change_.blocks.empty(), "take_change() is called after each plan");
  collect_released();
  if (pipeline_.has_room() && !should_wait())
    if (auto planned = plan_rows(now)) return planned;
  publish_gauges();
  return nullptr;
}

/// Whether the plan should wait for the allocator's next answer, because decodes lack blocks that
/// it may grant. As long as the executor computes a step, that costs no time.
bool batcher_core::should_wait() const {
  const bool answer_comes = request_ == request_state::asked || request_due_ || !blocks_.is_exact();
  return pipeline_.n_outstanding() > 0 && answer_comes &&
         blocks_.ready() < most_ahead(scheduler_.blocks_of_next_decodes().of_one_step);
}

/// Returns how many blocks are requested ahead if decodes need n_blocks, which may count sequences
/// that the last plan preempted. At most one block for each running sequence is requested: an
/// admission leaves that many free, so these blocks never compete with an admission.
std::int64_t batcher_core::most_ahead(std::int64_t n_blocks) const {
  return std::min(n_blocks, static_cast<std::int64_t>(scheduler_.running()));
}

step_plan_ptr batcher_core::plan_rows(steady_clock::time_point now) {
  if (prefill_budget_) scheduler_.set_mixed_prompt_tokens(prefill_budget_->prompt_tokens());
  scheduler_.plan(blocks_.free(), decision_, prefixes_.hits(groups_));
  // The next plan needs other blocks, or this one needed blocks that were not granted.
  request_due_ = request_due_ || !decision_.rows.empty() || scheduler_.decode_left_out() ||
                 scheduler_.head_left_out();
  if (decision_.preempted > 0) {
    stats_.update(
        [&](engine_stats& s) { s.preemptions += static_cast<std::uint64_t>(decision_.preempted); });
  }
  if (decision_.rows.empty()) {
    collect_released(); // the sequences that this plan has preempted
    return plans_.has_spills() ? send_plan(plans_.build_spills(), 0) : nullptr;
  }
  auto begun = prefixes_.begin(decision_.opened, groups_);
  blocks_.reuse(begun.n_evictable);
  change_.reuses = std::move(begun.reuses);
  change_.grows = decision_.grows;
  change_.forks = decision_.forks;
  change_.copies = decision_.copies;
  std::size_t n_blocks = decision_.copies.size();
  for (const lease_growth& g : decision_.grows)
    n_blocks += static_cast<std::size_t>(g.n_blocks);
  change_.blocks = blocks_.take(n_blocks);
  note_opened(now);
  return send_plan(plans_.build(decision_, change_.blocks, groups_), decision_.preempted);
}

std::optional<kv_change> batcher_core::take_change() {
  const bool planned = !change_.grows.empty() || !change_.forks.empty() || !change_.copies.empty();
  // A plan can preempt a sequence for which it begins a lease. Drops are applied first, so such a
  // lease ends with the next change.
  if (!planned) collect_released();
  change_.prefix_inserts = prefixes_.take_inserts();
  const bool changed =
      planned || change_.reset || !change_.prefix_inserts.empty() || !change_.drops.empty();
  if (!changed) return std::nullopt;
  // The next answer must say how many blocks are free after this change.
  request_due_ = changed_since_request_ = true;
  return std::exchange(change_, {});
}

/// Takes the blocks of sequences that have left or were preempted back.
void batcher_core::collect_released() {
  std::vector<released_sequence> released;
  scheduler_.take_released(released);
  for (const released_sequence& r : released) {
    if (r.leased) {
      change_.drops.push_back(r.id);
      blocks_.note_given_up();
    }
    if (r.opened) pipeline_.close(r.id);
    if (r.gone) observer_.forgotten(r.id);
    if (const auto over = groups_.release(r)) sessions_.forgotten(*over);
  }
}

std::optional<block_request> batcher_core::take_request() {
  if (request_ != request_state::none || !pipeline_.has_executor()) return std::nullopt;
  if (!std::exchange(request_due_, false)) return std::nullopt;
  block_request request;
  // Blocks of a match cannot be granted. So while decodes lack blocks, no prefix is looked up.
  if (!scheduler_.decode_left_out()) {
    std::vector<sequence_id> candidates;
    scheduler_.candidates(candidates);
    request.queries = prefixes_.queries(candidates, groups_);
  }
  // Blocks for two steps of decodes are requested, so that a late answer delays no decode.
  request.n_ahead = most_ahead(scheduler_.blocks_of_next_decodes().of_two_steps) - blocks_.ready();
  request.n_more = scheduler_.further_blocks();
  const bool lacks_blocks = request.n_ahead + request.n_more > 0;
  if (!std::exchange(changed_since_request_, false) && request.queries.empty() && !lacks_blocks)
    return std::nullopt;
  prefixes_.drop_matches();
  blocks_.note_request();
  request_ = request_state::asked;
  return request;
}

void batcher_core::granted(kv_grant grant, steady_clock::time_point now) {
  TWILL_ASSERT(request_ != request_state::none, "the allocator answers each request once");
  observer_.granted(grant, now);
  if (std::exchange(request_, request_state::none) == request_state::ignored) {
    request_due_ = true;
    return;
  }
  blocks_.add(grant.blocks, grant.free_blocks);
  prefixes_.take_matches(std::move(grant.matches));
  plans_.add_spills(std::move(grant.spills));
  if (tiers_.has_tiers())
    prefixes_.leave_out([&](const prefix_match& m) { return starts_fetch(m, now); });
}

/// Starts a fetch if host memory or disk has KV blocks of the sequence that follow those on the
/// device. Returns whether the sequence now waits for the fetch.
bool batcher_core::starts_fetch(const prefix_match& match, steady_clock::time_point now) {
  sequence* waits = groups_.find_sequence(match.id);
  if (waits == nullptr) return true; // it has left since it was looked up
  sequence& s = *waits;
  // Nothing is fetched for a sequence that cannot be admitted now: its blocks on the device could
  // be evicted while it waits.
  const std::int32_t width = limits_.plan.block_tokens;
  const std::int64_t all = (s.n_known() + width - 1) / width;
  const auto n_blocks = static_cast<std::int32_t>(match.blocks.size());
  if (all - n_blocks + match.n_evictable + static_cast<std::int64_t>(scheduler_.running()) >
      blocks_.free().all)
    return false;
  if (!tiers_.start_fetch(match, s.fetched, now)) return false;
  scheduler_.hold(match.id);
  request_due_ = true; // for the sequences that are candidates in place of this one
  return true;
}

void batcher_core::fetched(blocks_fetched answer, steady_clock::time_point now) {
  observer_.fetched(answer.fetch_id, answer.blocks.size(), now);
  const sequence_id waited = tiers_.end_fetch(answer, now);
  if (waited == 0) return;
  if (sequence* s = groups_.find_sequence(waited)) s->fetched.blocks = std::move(answer.blocks);
  scheduler_.unhold(waited);
  request_due_ = true;
}

step_plan_ptr batcher_core::send_plan(step_plan plan, std::int32_t preempted) {
  step_plan_ptr sent = pipeline_.send(std::move(plan));
  observer_.planned(*sent, preempted);
  return sent;
}

/// Notes which sequences enter the running set with the step that is being planned.
void batcher_core::note_opened(steady_clock::time_point now) {
  for (sequence_id id : decision_.opened) {
    sequence& s = groups_.at(id);
    if (s.scheduled == steady_clock::time_point{}) {
      s.scheduled = now;
      if (sequence_groups::group_of(s).leader == id)
        note_first_admission(s, s.fetched.after(static_cast<std::int32_t>(s.blocks.size())));
    }
    groups_.note_opened(s);
  }
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
  if (tiers_.has_tiers()) tiers_.step_done(*plan, result);
  if (plan->rows.empty()) return;
  step_counts counts;
  outputs_.keep_scores(result);
  auto drawn = result.drawn.begin(); // `drawn` and `skipped` are both in the order of rows
  auto skipped = result.skipped.begin();
  for (std::size_t i = 0; i < plan->rows.size(); ++i) {
    const planned_row& row = plan->rows[i];
    prefetch_rows(*plan, i);
    const bool drew = drawn != result.drawn.end() && drawn->id == row.id;
    const bool was_skipped = skipped != result.skipped.end() && *skipped == row.id;
    if (was_skipped) ++skipped;
    // If the plan let a sequence draw a token and the result has none, the sequence had already
    // ended in the step before.
    if (was_skipped || (row.draws && !drew)) {
      scheduler_.row_done(row.id, row.draws, false);
      continue;
    }
    counts.note_row(row.n_tokens);
    sequence& s = groups_.at(row.id);
    prefixes_.note_computed(row.id, s, row.first_position + row.n_tokens, groups_);
    if (sequence_groups::group_of(s).scores && s.spec.scores_prompt())
      outputs_.deliver_scores(s, row);
    if (drew) {
      note_drawn(s, row.id, drawn->token, now, counts);
      outputs_.deliver(row.id, s, *drawn++, result);
    }
    scheduler_.row_done(row.id, row.draws, drew);
  }
  if (counts.tokens() == 0) return;
  if (prefill_budget_)
    prefill_budget_->note_step(counts.decode_tokens(), counts.prefill_tokens(), result.seconds);
  counts.add_to(stats_, result);
}

void batcher_core::note_drawn(sequence& s, sequence_id id, std::int32_t token,
                              steady_clock::time_point now, step_counts& counts) {
  s.output.push_back(token);
  if (s.last_token != steady_clock::time_point{}) {
    counts.note_gap(now - s.last_token);
  } else {
    auto& owner = sequence_groups::group_of(s);
    owner.drew = true;
    if (owner.leader == id) counts.note_prompt(s.spec.prompt->size());
  }
  s.last_token = now;
}

/// Prefetches into the CPU cache the records of sequences that come after row i in the plan,
/// because the records of many sequences are scattered over memory. The caller loops over the rows;
/// a row is one sequence's part of the step.
void batcher_core::prefetch_rows(const step_plan& plan, std::size_t i) const {
  constexpr std::size_t far = 16, near = 8;
  if (i + far < plan.rows.size()) {
    groups_.prefetch(plan.rows[i + far].id);
    scheduler_.prefetch(plan.rows[i + far].id);
  }
  if (i + near < plan.rows.size()) {
    groups_.prefetch_sequence(plan.rows[i + near].id);
    scheduler_.prefetch_sequence(plan.rows[i + near].id);
  }
}

void batcher_core::step_failed(std::uint64_t generation, const std::string& detail,
                               bool device_is_lost) {
  if (generation != pipeline_.generation()) return observer_.ignored_step();
  observer_.step_failed(generation);
  if (const step_plan_ptr failed = pipeline_.oldest())
    orders_.fail_step(*failed, detail, device_is_lost);
  lose_executor();
}

scheduler_snapshot batcher_core::describe() const {
  return snapshot_of(groups_, scheduler_);
}

void batcher_core::publish_gauges() {
  if (pipeline_.n_outstanding() == 0) observer_.rested();
  stats_.update([&](engine_stats& s) {
    s.requests_waiting = groups_.n_waiting() + groups_.n_paused();
    s.requests_running = groups_.n_running();
    s.kv_blocks_total = limits_.total_blocks;
    s.kv_blocks_used = blocks_.used();
    s.kv_block_tokens = limits_.plan.block_tokens;
  });
}

} // namespace twill::actors
