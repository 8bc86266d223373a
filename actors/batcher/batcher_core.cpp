#include "actors/batcher/batcher_core.hpp"

#include <algorithm>
#include <utility>

namespace twill::actors {

namespace {
double in_seconds(steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}
} // namespace

batcher_core::batcher_core(const batcher_limits& limits, stats_board& stats, session_sink& sessions)
    : limits_(limits), stats_(stats), sessions_(sessions), scheduler_(limits.plan),
      free_blocks_(limits.total_blocks) {
  limits_.plan.max_running = std::min(limits.plan.max_running, limits.plan.max_step_tokens);
  if (limits.adapt_prefill_budget) prefill_budget_.emplace(limits.plan.max_step_tokens);
}

batcher_core::request_entry* batcher_core::find(request_id request) {
  const auto i = requests_.find(request);
  return i == requests_.end() || i->second.released ? nullptr : &i->second;
}

std::int32_t batcher_core::waiting_requests() const {
  std::int32_t n = 0;
  for (const auto& [id, r] : requests_)
    n += r.running == 0 && !r.released ? 1 : 0;
  return n;
}

void batcher_core::submit(const submit_prompt& prompt) {
  // The queue begins where the running set ends: a burst that will run at once is not refused.
  const auto may_start = limits_.plan.max_running - static_cast<std::int32_t>(scheduler_.running());
  const std::int32_t bound = limits_.max_queued + std::max(may_start, 0);
  if (requests_.size() >= static_cast<std::size_t>(bound) && waiting_requests() >= bound) {
    sessions_.failed(prompt.request,
                     {errc::queue_full,
                      "`scheduler.max_queued` must be > waiting requests, got " +
                          std::to_string(waiting_requests()) + " waiting; try again later",
                      ""});
    sessions_.forgotten(prompt.request);
    return;
  }
  request_entry r;
  r.first = next_id_;
  r.n_choices = r.left = prompt.n_choices;
  for (std::int32_t choice = 0; choice < prompt.n_choices; ++choice) {
    const sequence_id id = next_id_++;
    entry& e = sequences_[id];
    e.request = prompt.request;
    e.choice = choice;
    e.spec = prompt.spec;
    e.spec.seed += static_cast<std::uint64_t>(choice);
    scheduler_.add({id, choice == 0 ? 0 : r.first, static_cast<std::int32_t>(e.spec.prompt->size()),
                    e.spec.max_new});
  }
  requests_.emplace(prompt.request, r);
  sessions_.queued(prompt.request);
}

void batcher_core::finish_choice(request_id request, std::int32_t choice) {
  request_entry* r = find(request);
  if (r == nullptr) return;
  const sequence_id id = r->first + static_cast<sequence_id>(choice);
  if (auto e = sequences_.find(id); e != sequences_.end()) {
    e->second.finished = true;
    scheduler_.leave(id);
  }
}

void batcher_core::release(request_id request) {
  request_entry* r = find(request);
  if (r == nullptr) return;
  r->released = true;
  for (std::int32_t i = 0; i < r->n_choices; ++i)
    scheduler_.leave(r->first + static_cast<sequence_id>(i));
}

void batcher_core::pause(request_id request) {
  if (request_entry* r = find(request))
    for (std::int32_t i = 0; i < r->n_choices; ++i)
      scheduler_.pause(r->first + static_cast<sequence_id>(i));
}

void batcher_core::resume(request_id request) {
  if (request_entry* r = find(request))
    for (std::int32_t i = 0; i < r->n_choices; ++i)
      scheduler_.resume(r->first + static_cast<sequence_id>(i));
}

std::optional<kv_change> batcher_core::take_drops() {
  scheduler_.take_released(released_);
  kv_change change;
  change.reset = std::exchange(reset_blocks_, false);
  for (const released_sequence& r : released_) {
    if (r.leased) change.drops.push_back(r.id);
    if (r.opened) closes_.push_back(r.id);
    forget(r);
  }
  if (!change.reset && change.drops.empty()) return std::nullopt;
  change.prefix_inserts = std::exchange(prefix_inserts_, {});
  return change;
}

void batcher_core::forget(const released_sequence& r) {
  const auto e = sequences_.find(r.id);
  e->second.blocks.clear();
  e->second.n_inserted = 0;
  const auto owner = requests_.find(e->second.request);
  if (r.opened) owner->second.running -= 1;
  if (!r.gone) return;
  sequences_.erase(e);
  if (--owner->second.left > 0) return;
  sessions_.forgotten(owner->first);
  requests_.erase(owner);
}

void batcher_core::note_blocks(kv_grant& answer) {
  free_blocks_ = answer.free_blocks;
  used_blocks_ = answer.used_blocks;
  matches_ = std::move(answer.matches);
}

std::optional<kv_change> batcher_core::plan() {
  hits_.clear();
  for (const prefix_match& m : matches_)
    hits_.push_back({m.id, static_cast<std::int32_t>(m.blocks.size()), m.n_evictable});
  if (prefill_budget_) scheduler_.set_mixed_prompt_tokens(prefill_budget_->allowance());
  scheduler_.plan(free_blocks_, decided_, hits_);
  if (decided_.preempted > 0) {
    stats_.update(
        [&](engine_stats& s) { s.preemptions += static_cast<std::uint64_t>(decided_.preempted); });
  }
  kv_change change;
  begin_reused(change);
  if (decided_.rows.empty()) return std::nullopt;
  change.grows = decided_.grows;
  change.forks = decided_.forks;
  if (!change.grows.empty() || !change.forks.empty())
    change.prefix_inserts = std::exchange(prefix_inserts_, {});
  return change;
}

step_plan_ptr batcher_core::make_plan(const kv_grant& grant, steady_clock::time_point now) {
  auto plan = std::make_shared<step_plan>();
  plan->epoch = epoch_;
  plan->number = ++step_number_;
  plan->closes = std::exchange(closes_, {});
  for (sequence_id id : decided_.opened) {
    entry& e = sequences_.at(id);
    if (e.scheduled == steady_clock::time_point{}) {
      e.scheduled = now;
      if (e.choice == 0) note_first_admission(e);
    }
    requests_.at(e.request).running += 1;
    plan->opens.push_back({id, e.spec, e.output, e.blocks});
  }
  plan->grows = decided_.grows;
  plan->blocks = grant.blocks;
  std::size_t at = 0;
  for (const lease_growth& g : decided_.grows) {
    auto& blocks = sequences_.at(g.id).blocks;
    const auto first = grant.blocks.begin() + static_cast<std::ptrdiff_t>(at);
    blocks.insert(blocks.end(), first, first + g.n_blocks);
    at += static_cast<std::size_t>(g.n_blocks);
  }
  for (const lease_fork& f : decided_.forks) {
    const auto& source = sequences_.at(f.from).blocks;
    sequences_.at(f.id).blocks.assign(source.begin(), source.begin() + f.n_blocks);
  }
  plan->rows = decided_.rows;
  outstanding_.push_back(plan);
  return plan;
}

void batcher_core::step_done(const step_result& result, steady_clock::time_point now) {
  if (result.epoch != epoch_ || outstanding_.empty()) return;
  TWILL_ASSERT(outstanding_.front()->number == result.number, "steps come back in order");
  const step_plan_ptr plan = outstanding_.front();
  outstanding_.erase(outstanding_.begin());
  gaps_seconds_.clear();
  std::uint64_t prompt_tokens = 0, step_tokens = 0;
  std::int32_t decodes = 0, of_prompts = 0;
  auto drawn = result.drawn.begin(); // in the order of rows, finished ones left out
  for (const planned_row& row : plan->rows) {
    step_tokens += static_cast<std::uint64_t>(row.n_tokens);
    (row.n_tokens == 1 ? decodes : of_prompts) += row.n_tokens;
    const bool drew = drawn != result.drawn.end() && drawn->id == row.id;
    entry& e = sequences_.at(row.id);
    // A row that should have drawn and did not was skipped.
    if (drew || !row.draws) insert_computed(row.id, e, row.first_position + row.n_tokens);
    if (drew) {
      deliver(row.id, e, *drawn++, result, now);
      if (e.output.size() == 1 && e.choice == 0) prompt_tokens += e.spec.prompt->size();
    }
    scheduler_.row_done(row.id, row.draws, drew);
  }
  if (prefill_budget_) prefill_budget_->step_took(decodes, of_prompts, result.seconds);
  stats_.update([&](engine_stats& s) {
    s.steps += 1;
    s.prompt_tokens += prompt_tokens;
    s.generation_tokens += result.drawn.size();
    s.device_memory_used_bytes = result.memory_used_bytes;
    observe(s.iteration_tokens, static_cast<double>(step_tokens));
    for (double gap : gaps_seconds_)
      observe(s.inter_token_latency_seconds, gap);
  });
}

void batcher_core::deliver(sequence_id id, entry& e, const drawn_token& drawn,
                           const step_result& result, steady_clock::time_point now) {
  e.output.push_back(drawn.token);
  if (e.output.size() > 1) gaps_seconds_.push_back(in_seconds(now - e.last_token));
  e.last_token = now;
  // A token drawn by a step that was prepared before the end was known is dropped.
  const request_entry* owner = find(e.request);
  if (e.finished || owner == nullptr) return;
  token_ready out;
  out.choice = e.choice;
  out.token = drawn.token;
  out.stopped = drawn.stopped;
  out.length = !drawn.stopped && e.output.size() >= static_cast<std::size_t>(e.spec.max_new);
  out.logprob = drawn.logprob;
  const auto first = result.top.begin() + drawn.first_top;
  out.top.assign(first, first + drawn.n_top);
  out.scheduled = e.scheduled;
  out.cached_tokens = owner->cached_tokens;
  if (out.stopped || out.length) {
    e.finished = true;
    scheduler_.leave(id);
  }
  sessions_.token(e.request, std::move(out));
}

void batcher_core::step_failed(std::uint64_t epoch, const std::string& detail) {
  if (epoch != epoch_) return;
  if (!outstanding_.empty()) {
    const step_plan_ptr failed = outstanding_.front();
    for (const planned_row& row : failed->rows)
      fail(sequences_.at(row.id).request,
           {errc::executor_failed, "the step that held this request failed: " + detail, ""});
  }
  lose_executor();
}

void batcher_core::lose_executor() {
  outstanding_.clear();
  closes_.clear();
  prefix_inserts_.clear();
  matches_.clear();
  scheduler_.forget_device();
  for (auto& [id, e] : sequences_) {
    e.blocks.clear();
    e.n_inserted = 0;
  }
  for (auto& [id, r] : requests_)
    r.running = 0;
  reset_blocks_ = true;
  executor_up_ = false;
  epoch_ += 1;
}

void batcher_core::fail(request_id request, const request_error& why) {
  if (find(request) == nullptr) return;
  sessions_.failed(request, why);
  release(request);
}

void batcher_core::executor_ready() {
  if (executor_up_) lose_executor();
  executor_up_ = true;
}

void batcher_core::give_up(const request_error& why) {
  lose_executor();
  std::vector<request_id> all;
  for (const auto& [id, r] : requests_)
    all.push_back(id);
  for (request_id id : all)
    fail(id, why);
}

void batcher_core::publish() {
  const std::int32_t waiting = waiting_requests();
  std::int32_t released = 0;
  for (const auto& [id, r] : requests_)
    released += r.released ? 1 : 0;
  stats_.update([&](engine_stats& s) {
    s.requests_waiting = waiting;
    s.requests_running = static_cast<std::int32_t>(requests_.size()) - waiting - released;
    s.kv_blocks_total = limits_.total_blocks;
    s.kv_blocks_used = used_blocks_;
    s.kv_block_tokens = limits_.plan.block_tokens;
  });
}

} // namespace twill::actors
