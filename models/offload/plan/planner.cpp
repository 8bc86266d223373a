#include "models/offload/plan/planner.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace twill::models::offload {

double overflow_bytes(const memory_projection& memory, const plan_request& request) {
  const tier_bytes peak = memory.peak();
  const machine_description& on = request.machine;
  return std::max(peak.device + request.workspace_bytes - on.device_bytes, 0.0) +
         std::max(peak.host - on.host_bytes, 0.0) + std::max(peak.disk - on.disk_bytes, 0.0);
}

namespace {

constexpr std::array<double, 6> step_sizes{0.4, 0.2, 0.1, 0.05, 0.02, 0.01};

/// The shares of a policy as the numbers that the search changes, indexed [kind][tier].
using shares = std::array<std::array<double, 3>, 3>;
enum kind : std::size_t { weights, kv, hidden, n_kinds };

tier_split split_of(const std::array<double, 3>& tiers) {
  return {tiers[0], tiers[1]};
}

std::array<double, 3> tiers_of(const tier_split& split) {
  return {split.device, split.host, split.disk()};
}

/// Searches the best shares for fixed sizes and a fixed schedule.
class share_search {
public:
  share_search(const plan_request& request, const offload_policy& policy)
      : request_(request), best_{policy, {}, {}, 0},
        load_(load_of(request.work, policy, request.block_tokens)) {
    const offload_model& m = request.model;
    const double size = policy.batch_size;
    bytes_ = {m.n_layers * layer_weight_bytes(m),
              m.n_layers * kv_bytes_per_position(m) * size * load_.peak_kv_positions,
              m.hidden_bytes_per_value * m.hidden_size * size * load_.peak_hidden_tokens};
    fixed_ = {request.weights.has_value(), request.kv.has_value(), request.hidden.has_value()};
  }

  /// The tokens per second with everything on the device, which is the upper bound for all shares.
  double fastest_tokens_per_s() const {
    offload_policy all = best_.policy;
    all.weights = all.kv = all.hidden = tier_split{};
    return estimate_of(all).tokens_per_s;
  }

  const offload_plan& run() {
    try_corners();
    for (const double step : step_sizes)
      while (improve(step)) {
      }
    return best_;
  }

  double overflow() const { return overflow_; }

private:
  offload_estimate estimate_of(const offload_policy& policy) const {
    const offload_cost cost(request_.model, request_.machine, policy, request_.work);
    return estimate(cost, request_.model.n_layers, policy, request_.work, load_);
  }

  /// Makes `at`, which says what share of weights, KV and hidden states is in which tier, the best
  /// plan so far if it exceeds the memory by fewer bytes than the previous best plan, or if it
  /// exceeds it by equally many bytes and is faster.
  bool consider(const shares& at) {
    offload_policy policy = best_.policy;
    policy.weights = split_of(at[weights]);
    policy.kv = split_of(at[kv]);
    policy.hidden = split_of(at[hidden]);
    const auto memory = project_memory(request_.model, request_.work, policy, load_);
    const double overflow = overflow_bytes(memory, request_);
    ++best_.n_tried;
    if (overflow > overflow_) return false;
    const auto estimate = estimate_of(policy);
    const bool faster = estimate.tokens_per_s > best_.estimate.tokens_per_s * (1 + 1e-9);
    if (overflow >= overflow_ && !faster) return false;
    best_ = {policy, estimate, memory, best_.n_tried};
    overflow_ = overflow;
    at_ = at;
    return true;
  }

  void try_corners() {
    const auto choices = [](const std::optional<tier_split>& fixed) {
      std::vector<std::array<double, 3>> out{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
      if (fixed) out = {tiers_of(*fixed)};
      return out;
    };
    for (const auto& w : choices(request_.weights))
      for (const auto& c : choices(request_.kv))
        for (const auto& h : choices(request_.hidden))
          consider({w, c, h});
  }

  bool move(shares& at, std::size_t what, std::size_t from, std::size_t to, double step) const {
    const double moved = std::min(step, at[what][from]);
    if (fixed_[what] || moved <= 0) return false;
    at[what][from] -= moved;
    at[what][to] += moved;
    return true;
  }

  /// Tries all moves of size `step` once. Returns true if one of them gave better shares.
  bool improve(double step) {
    bool helped = false;
    for (std::size_t what = 0; what < n_kinds; ++what)
      for (std::size_t from = 0; from < 3; ++from)
        for (std::size_t to = 0; to < 3; ++to) {
          shares moved = at_;
          if (from == to || !move(moved, what, from, to, step)) continue;
          helped = consider(moved) || helped;
          helped = exchange(moved, what, from, to, step) || helped;
        }
    return helped;
  }

  /// Moves bytes of another kind into the memory that the first move made free.
  bool exchange(const shares& moved, std::size_t what, std::size_t from, std::size_t to,
                double step) {
    bool helped = false;
    for (std::size_t other = 0; other < n_kinds; ++other) {
      shares both = moved;
      const double as_much = step * bytes_[what] / std::max(bytes_[other], 1.0);
      if (other == what || !move(both, other, to, from, as_much)) continue;
      helped = consider(both) || helped;
    }
    return helped;
  }

  const plan_request& request_;
  offload_plan best_;
  schedule_load load_;
  std::array<double, n_kinds> bytes_{};
  std::array<bool, n_kinds> fixed_{};
  shares at_{};
  double overflow_ = std::numeric_limits<double>::infinity();
};

std::vector<std::int32_t> sizes_up_to(const std::optional<std::int32_t>& fixed, std::int32_t most) {
  if (fixed) return {*fixed};
  std::vector<std::int32_t> out;
  for (std::int32_t n = 1; n <= most; n *= 2) {
    if (n >= 8 && n / 4 * 3 <= most) out.push_back(n / 4 * 3);
    out.push_back(n);
  }
  if (out.back() != most) out.push_back(most);
  std::reverse(out.begin(),
               out.end()); // large batches first, because their results let the search skip small
                           // ones
  return out;
}

std::vector<std::int32_t> staggers(const plan_request& request, search_order order,
                                   std::int32_t n_batches) {
  if (order == search_order::zigzag) return {1};
  if (request.stagger) return {*request.stagger};
  const std::int32_t even = even_stagger(request.work.gen_len, n_batches);
  return even == 1 ? std::vector<std::int32_t>{1} : std::vector<std::int32_t>{1, even};
}

class size_search {
public:
  explicit size_search(const plan_request& request) : request_(request) {}

  /// Tries plans with the largest micro-batches first and, among plans with equal ones, those with
  /// the most micro-batches. A plan is skipped if the upper bound of its speed is not above the
  /// best speed found so far, which is so for most of the smaller plans.
  void run() {
    const auto batches = sizes_up_to(request_.n_batches, request_.max_batches);
    for (const auto size : sizes_up_to(request_.batch_size, request_.max_batch_size))
      for (const auto n : batches)
        try_sizes(size, n);
    if (!best_) return;
    for (const std::int32_t step : {4, 2, 1})
      while (try_beside(step)) {
      }
  }

  const std::optional<offload_plan>& best() const { return best_; }
  double least_overflow() const { return least_overflow_; }

private:
  bool try_sizes(std::int32_t batch_size, std::int32_t n_batches) {
    const std::int64_t prompts = request_.work.n_prompts;
    if (prompts > 0 && std::int64_t{batch_size} * (n_batches - 1) >= prompts) return false;
    bool helped = false;
    for (const search_order order : {search_order::zigzag, search_order::diagonal}) {
      if (request_.order.value_or(order) != order) continue;
      if (order == search_order::diagonal && n_batches == 1 && !request_.order) continue;
      for (const std::int32_t stagger : staggers(request_, order, n_batches))
        for (const bool on_host : {false, true}) {
          if (request_.host_attention.value_or(on_host) != on_host) continue;
          offload_policy policy;
          policy.order = order;
          policy.batch_size = batch_size;
          policy.n_batches = n_batches;
          policy.stagger = stagger;
          policy.host_attention = on_host;
          policy.outer_resident = request_.outer_resident;
          policy.ring_layers = request_.ring_layers;
          policy.kv_buffers = request_.kv_buffers;
          helped = try_policy(policy) || helped;
        }
    }
    return helped;
  }

  bool try_policy(const offload_policy& policy) {
    share_search search(request_, policy);
    if (best_ && search.fastest_tokens_per_s() <= best_->estimate.tokens_per_s) return false;
    const offload_plan& found = search.run();
    n_tried_ += found.n_tried;
    least_overflow_ = std::min(least_overflow_, search.overflow());
    if (search.overflow() > 0) return false;
    if (best_ && found.estimate.tokens_per_s <= best_->estimate.tokens_per_s) return false;
    best_ = found;
    best_->n_tried = n_tried_;
    return true;
  }

  /// Tries sizes that differ from the best so far by one `step`.
  bool try_beside(std::int32_t step) {
    const offload_policy from = best_->policy;
    bool helped = false;
    for (const std::int32_t by : {-step, step}) {
      const std::int32_t size = from.batch_size + by, n = from.n_batches + by;
      if (!request_.batch_size && size >= 1 && size <= request_.max_batch_size)
        helped = try_sizes(size, from.n_batches) || helped;
      if (!request_.n_batches && n >= 1 && n <= request_.max_batches)
        helped = try_sizes(from.batch_size, n) || helped;
    }
    return helped;
  }

  const plan_request& request_;
  std::optional<offload_plan> best_;
  double least_overflow_ = std::numeric_limits<double>::infinity();
  std::int64_t n_tried_ = 0;
};

std::optional<std::string> problem_of(const plan_request& r) {
  const auto wrong = [](const std::string& field, const std::string& rule, double value) {
    return std::optional(field + " must be " + rule + ", got " + std::to_string(value));
  };
  const offload_model& m = r.model;
  for (const auto& [field, value] : {std::pair{"n_layers", m.n_layers},
                                     {"hidden_size", m.hidden_size},
                                     {"prompt_len", r.work.prompt_len},
                                     {"gen_len", r.work.gen_len},
                                     {"batch_size", r.batch_size.value_or(1)},
                                     {"n_batches", r.n_batches.value_or(1)},
                                     {"stagger", r.stagger.value_or(1)},
                                     {"ring_layers", r.ring_layers},
                                     {"kv_buffers", r.kv_buffers},
                                     {"block_tokens", r.block_tokens},
                                     {"max_batch_size", r.max_batch_size},
                                     {"max_batches", r.max_batches}})
    if (value < 1) return wrong(field, "at least 1", value);
  const machine_description& on = r.machine;
  for (const auto& [field, value] : {std::pair{"device_flops", on.device_flops},
                                     {"device_bytes_per_s", on.device_bytes_per_s},
                                     {"host_flops", on.host_flops},
                                     {"host_bytes_per_s", on.host_bytes_per_s},
                                     {"h2d_bytes_per_s", on.h2d_bytes_per_s},
                                     {"d2h_bytes_per_s", on.d2h_bytes_per_s},
                                     {"disk_read_bytes_per_s", on.disk_read_bytes_per_s},
                                     {"disk_write_bytes_per_s", on.disk_write_bytes_per_s}})
    if (!(value > 0)) return wrong(field, "above 0", value);
  for (const auto& [field, split] :
       {std::pair{"weights", r.weights}, {"kv", r.kv}, {"hidden", r.hidden}}) {
    if (!split) continue;
    for (const double part : {split->device, split->host, split->device + split->host})
      if (!(part >= 0 && part <= 1 + 1e-9)) return wrong(field, "shares from 0 to 1", part);
  }
  return std::nullopt;
}

} // namespace

twill::result<offload_plan, plan_errc> make_plan(const plan_request& request) {
  if (const auto problem = problem_of(request))
    return failure<plan_errc>{plan_errc::bad_request, *problem};
  size_search search(request);
  search.run();
  if (search.best()) return *search.best();
  return failure<plan_errc>{plan_errc::does_not_fit,
                            "no plan fits: the smallest found needs " +
                                gb_text(search.least_overflow()) + " more than " +
                                gb_text(request.machine.device_bytes) + " on the device, " +
                                gb_text(request.machine.host_bytes) + " on the host and " +
                                gb_text(request.machine.disk_bytes) + " on disk hold"};
}

} // namespace twill::models::offload
