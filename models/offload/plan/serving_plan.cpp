#include "models/offload/plan/serving_plan.hpp"

#include <algorithm>
#include <cmath>

#include "models/offload/plan/plan_memory.hpp"

namespace twill::models::offload {
namespace {

constexpr double worth_it = 1.02;
constexpr std::int32_t least_step_tokens = 64;
constexpr std::int32_t most_step_tokens = 8192;

double sequence_bytes(const serving_request& r) {
  const double tokens = r.work.prompt_len + r.work.gen_len;
  const double blocks = std::ceil(tokens / r.block_tokens);
  return blocks * r.block_tokens * kv_bytes_per_position(r.model) * r.model.n_layers;
}

/// Weights get the memory that KV and workspace leave: first on the device, then on the host, then
/// on disk.
std::optional<tier_split> place(const serving_request& r, double device_bytes) {
  const double layer = layer_weight_bytes(r.model);
  const double all = r.model.n_layers * layer + outer_weight_bytes(r.model) - r.small_bytes;
  const double room = device_bytes - r.small_bytes;
  tier_split split;
  if (all > room) {
    const double beside_ring = room - r.ring_layers * layer;
    if (beside_ring < 0) return std::nullopt;
    split.device = std::min(beside_ring / all, 1.0);
    split.host = std::min(1 - split.device, r.host_share.value_or(r.machine.host_bytes / all));
  }
  return split;
}

/// Computes the seconds of each resource for `p.n_sequences` requests from prompt to end. Prompts
/// take as many steps as their rows need, decodes run in the same steps as prompts, and weights are
/// fetched once per step.
void cost(const serving_request& r, serving_plan& p) {
  offload_policy policy;
  policy.batch_size = p.n_sequences;
  policy.weights = p.weights;
  policy.outer_resident = false;
  const offload_cost costs(r.model, r.machine, policy, r.work);
  const double prompt = r.work.prompt_len, output = r.work.gen_len;
  const double steps = std::max(p.n_sequences * (prompt + output) / p.step_tokens,
                                output + std::ceil(prompt / p.step_tokens) - 1);
  resource_seconds busy;
  busy.add(costs.prefill().seconds, r.model.n_layers);
  busy.add(costs.decode(prompt + output / 2).seconds, r.model.n_layers * output);
  busy.add(costs.outer(), output);
  busy.add(costs.fetch(), r.model.n_layers * steps).add(costs.outer_fetch(), steps);
  const double fetch = [&] {
    resource_seconds one;
    one.add(costs.fetch(), r.model.n_layers).add(costs.outer_fetch());
    return one.most();
  }();
  const auto device = offload_resource::device;
  const double decode =
      r.model.n_layers * costs.decode(prompt + output / 2).seconds[device] + costs.outer()[device];
  const double row = r.model.n_layers * costs.prefill().seconds[device] / (p.n_sequences * prompt);
  const double beside = std::max((fetch - decode) / row, p.n_sequences * prompt / output);
  p.mixed_prompt_tokens = static_cast<std::int32_t>(
      std::min(16 * std::ceil(std::max(beside, 1.0) / 16), static_cast<double>(p.step_tokens)));
  p.bound = busy.busiest();
  p.tokens_per_s = p.n_sequences * output / std::max(busy.most(), 1e-12);
}

std::optional<serving_plan> try_plan(const serving_request& r, std::int32_t n_sequences,
                                     std::int32_t step_tokens) {
  serving_plan p;
  p.n_sequences = n_sequences;
  p.step_tokens = step_tokens;
  p.kv_bytes = r.kv_bytes.value_or(std::max(n_sequences * sequence_bytes(r), r.least_kv_bytes));
  const double workspace = r.workspace_bytes + step_tokens * r.step_token_bytes;
  const auto split = place(r, r.machine.device_bytes - workspace - p.kv_bytes);
  if (!split) return std::nullopt;
  p.weights = *split;
  cost(r, p);
  return p;
}

/// The best plan with steps from `shortest` to `longest`.
std::optional<serving_plan> best_plan(const serving_request& r, std::int32_t shortest,
                                      std::int32_t longest) {
  const double fitting = r.kv_bytes ? std::floor(*r.kv_bytes / sequence_bytes(r)) : r.max_running;
  const auto most =
      static_cast<std::int32_t>(std::clamp<double>(fitting, 1, std::max(r.max_running, 1)));
  std::optional<serving_plan> best;
  for (std::int32_t step = shortest; step <= longest; step *= 2)
    for (std::int32_t n = 1; n <= most; n = std::max(n + 1, n + n / 8)) {
      const auto found = try_plan(r, n, step);
      if (!found) break; // more sequences need more
      if (!best || found->tokens_per_s > best->tokens_per_s * worth_it) best = found;
    }
  return best;
}

std::optional<serving_plan> best_of_steps(const serving_request& r) {
  if (r.step_tokens) return best_plan(r, *r.step_tokens, *r.step_tokens);
  auto best = best_plan(r, default_step_tokens, most_step_tokens);
  for (std::int32_t step = default_step_tokens / 2; !best && step >= least_step_tokens; step /= 2)
    best = best_plan(r, step, step); // a small device may only have room for shorter steps
  return best;
}

} // namespace

std::optional<serving_plan> plan_serving(const serving_request& r) {
  auto best = best_of_steps(r);
  if (!best) return best;
  serving_plan alone = *best;
  alone.n_sequences = 1;
  cost(r, alone);
  best->alone_tokens_per_s = alone.tokens_per_s;
  return best;
}

} // namespace twill::models::offload
