#include "actors/batcher/tier_client.hpp"

#include <algorithm>
#include <utility>

namespace twill::actors {

namespace {

void average(double& seconds_each, double n, double seconds) {
  if (n <= 0 || seconds <= 0) return;
  const double now = seconds / n;
  seconds_each = seconds_each == 0 ? now : seconds_each + (now - seconds_each) / 4;
}

} // namespace

void tier_speeds::note_prefill(std::int32_t tokens, double seconds) {
  // The time of a short prompt is mostly a step's fixed cost, which says little about a long
  // prompt.
  if (tokens >= 2 * block_tokens_)
    average(compute_s_, static_cast<double>(tokens) / block_tokens_, seconds);
}

void tier_speeds::note_copies(std::size_t blocks, double seconds) {
  average(copy_s_, static_cast<double>(blocks), seconds);
}

void tier_speeds::note_fetch(std::size_t blocks, double seconds) {
  average(fetch_s_, static_cast<double>(blocks), seconds);
}

void tier_speeds::note_given_up(std::size_t blocks, double seconds) {
  // The fetch would have taken longer than this, and longer than computing the blocks.
  average(fetch_s_, static_cast<double>(blocks),
          std::max(seconds, 2 * compute_s_ * static_cast<double>(blocks)));
}

bool tier_speeds::worth_fetching(std::size_t blocks) {
  if (blocks == 0) return false;
  if (compute_s_ == 0 || fetch_s_ + copy_s_ <= compute_s_) return true;
  if (++n_slow_ % 16 == 0) return true;
  ++n_refused_;
  return false;
}

std::chrono::milliseconds tier_speeds::patience(std::size_t blocks) const {
  using std::chrono::milliseconds;
  if (compute_s_ == 0) return milliseconds(2000);
  const double ms = 2000 * compute_s_ * static_cast<double>(blocks);
  return milliseconds(static_cast<std::int64_t>(std::clamp(ms, 250.0, 10000.0)));
}

bool tier_client::start_fetch(const prefix_match& match, sequence_groups::fetched_blocks& fetched,
                              steady_clock::time_point now) {
  // a second fetch is for blocks that were evicted again before the admission was computed
  constexpr std::int32_t most_fetches = 2;
  const auto n_blocks = static_cast<std::int32_t>(match.blocks.size());
  if (fetched.after(n_blocks) > 0) return false;
  fetched.blocks.clear();
  if (match.tier_keys.empty() || fetched.n_fetches >= most_fetches ||
      !speeds.worth_fetching(match.tier_keys.size()))
    return false;
  ++fetched.n_fetches;
  fetched.first = n_blocks;
  fetched.fetch_id = begin(match.id, now, match.tier_keys.size());
  // The tiers (host memory and disk) get an earlier deadline than `patience`. At that deadline they
  // answer with the blocks that they have read, so the fetch is given up only if they hang.
  const auto patience = speeds.patience(match.tier_keys.size());
  tiers_->fetch({fetched.fetch_id, match.tier_keys, now + patience * 3 / 4}, patience);
  return true;
}

sequence_id tier_client::end_fetch(const blocks_fetched& answer, steady_clock::time_point now) {
  const fetch ended = end(answer.fetch_id);
  if (ended.id == 0) return 0;
  if (answer.given_up)
    speeds.note_given_up(ended.n_blocks, std::chrono::duration<double>(now - ended.asked).count());
  else
    speeds.note_fetch(answer.blocks.size(), answer.seconds);
  return ended.id;
}

void tier_client::step_done(const step_plan& plan, const step_result& result) {
  speeds.note_copies(plan.spills.size() + plan.loads.size(), result.copy_seconds);
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
    speeds.note_prefill(prompt_tokens, result.seconds - result.copy_seconds);
  if (plan.spills.empty()) return;
  blocks_spilled spilled;
  for (const block_spill& s : plan.spills)
    spilled.blocks.emplace_back(s.identity, s.to);
  tiers_->spilled(std::move(spilled));
}

} // namespace twill::actors
