#include "models/offload/plan/round_loads.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace twill::models::offload {
namespace {

/// Rounds that have the same number of prefills and the same number of decodes (one mix) are sorted
/// by the length of their context and divided into at most this many groups; all rounds of a group
/// count as having its mean context. That is exact enough, because the cost is convex and nearly
/// linear in the context.
constexpr std::size_t points_per_mix = 8;

using mix = std::pair<std::int32_t, std::int32_t>; // prefills, decodes

struct round_tally {
  mix members{0, 0};
  double context = 0;
  double kv = 0;
  double hidden = 0;
};

void append_points(const mix& members, std::vector<double>& contexts,
                   std::vector<round_load>& out) {
  std::sort(contexts.begin(), contexts.end());
  const std::size_t n_points = std::min(contexts.size(), points_per_mix);
  for (std::size_t p = 0; p < n_points; ++p) {
    const std::size_t from = contexts.size() * p / n_points;
    const std::size_t to = contexts.size() * (p + 1) / n_points;
    double sum = 0;
    for (std::size_t i = from; i < to; ++i)
      sum += contexts[i];
    const auto count = static_cast<double>(to - from);
    out.push_back({count, static_cast<double>(members.first), static_cast<double>(members.second),
                   sum / count});
  }
}

} // namespace

std::int64_t n_batches_of(const offload_workload& work, const offload_policy& policy) {
  if (work.n_prompts == 0) return policy.n_batches;
  return (work.n_prompts + policy.batch_size - 1) / policy.batch_size;
}

schedule_shape shape_of(const offload_workload& work, const offload_policy& policy,
                        std::int32_t n_layers) {
  schedule_shape shape;
  shape.order = policy.order;
  shape.n_layers = n_layers;
  shape.max_alive = policy.n_batches;
  shape.stagger = policy.stagger;
  shape.n_steps.assign(static_cast<std::size_t>(n_batches_of(work, policy)), work.gen_len);
  return shape;
}

schedule_load load_of(const offload_workload& work, const offload_policy& policy,
                      std::int32_t block_tokens) {
  schedule_load load;
  load.n_batches = static_cast<double>(n_batches_of(work, policy));
  std::map<mix, std::vector<double>> mixes;
  round_tally tally;
  const auto close_round = [&] {
    if (tally.members == mix{0, 0}) return;
    mixes[tally.members].push_back(tally.context);
    load.peak_kv_positions = std::max(load.peak_kv_positions, tally.kv);
    load.peak_hidden_tokens = std::max(load.peak_hidden_tokens, tally.hidden);
    tally = {};
  };

  schedule_cursor cursor(
      shape_of(work, policy, 1)); // with one layer, a task is a whole step of a micro-batch
  std::int64_t round = 0;
  while (const auto step = cursor.next()) {
    if (std::exchange(round, cursor.rounds()) != cursor.rounds()) close_round();
    const std::int32_t stored = work.prompt_len + step->token;
    if (step->token == 0) {
      ++tally.members.first;
    } else {
      ++tally.members.second;
      tally.context += stored;
    }
    tally.kv += (stored + block_tokens - 1) / block_tokens * block_tokens;
    tally.hidden += step->token == 0 ? work.prompt_len : 1;
  }
  close_round();
  load.n_rounds = static_cast<double>(cursor.rounds());
  for (auto& [members, contexts] : mixes)
    append_points(members, contexts, load.rounds);
  return load;
}

} // namespace twill::models::offload
