#include "tools/twill-bench/plan/load_batcher.hpp"

#include <ctime>

#include <chrono>
#include <string>
#include <utility>
#include <variant>

#include "actors/kv/apply_change.hpp"

namespace twill::bench {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::int32_t block_tokens = 16;

/// CPU seconds of this thread. They do not include time in which other programs use the core.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::int32_t blocks_for(const load_batcher_settings& s) {
  const std::int32_t of_one = (s.prompt_tokens + s.output_tokens) / block_tokens + 1;
  return s.running * (s.few_blocks ? of_one - 4 : 2 * of_one);
}

actors::batcher_limits limits_for(const load_batcher_settings& s) {
  actors::batcher_limits limits;
  const std::int32_t most = s.few_blocks ? 2 * s.running : s.running;
  limits.plan = {most + 4096, most, block_tokens, s.prefix_cache, 4096};
  limits.max_queued = s.queued + s.running;
  limits.total_blocks = blocks_for(s);
  return limits;
}

} // namespace

load_batcher::load_batcher(const load_batcher_settings& settings)
    : settings_(settings), pool_(blocks_for(settings), block_tokens),
      core_(limits_for(settings), stats_, *this),
      sampling_(std::make_shared<const config::sampling_params>()),
      stop_ids_(std::make_shared<const std::vector<std::int32_t>>()) {
  core_.executor_ready(1, limits_for(settings));
  missing_ = settings.queued + settings.running;
  plan_seconds ignored;
  plan(ignored);
}

std::int32_t load_batcher::running() const {
  return stats_.read().requests_running;
}

std::int32_t load_batcher::waiting() const {
  return stats_.read().requests_waiting;
}

void load_batcher::submit() {
  const auto begin = static_cast<std::int32_t>(submitted_ * 7919 % 1'000'000);
  std::vector<std::int32_t> prompt(static_cast<std::size_t>(settings_.prompt_tokens));
  for (std::size_t i = 0; i < prompt.size(); ++i)
    prompt[i] = begin + static_cast<std::int32_t>(i);
  actors::submit_prompt order;
  order.request = ++submitted_;
  order.spec.prompt = std::make_shared<const std::vector<std::int32_t>>(std::move(prompt));
  order.spec.sampling = sampling_;
  order.spec.stop_ids = stop_ids_;
  // The lengths differ, so that requests do not all end at once.
  order.spec.max_new = settings_.output_tokens / 2 +
                       static_cast<std::int32_t>(
                           submitted_ * 31 % static_cast<std::uint64_t>(settings_.output_tokens));
  core_.submit(order);
}

void load_batcher::plan(plan_seconds& spent) {
  for (; missing_ > 0; --missing_)
    submit();
  for (;;) {
    double began = thread_seconds();
    const auto now = clock::now();
    auto action = core_.next(now);
    spent.plan += thread_seconds() - began;
    if (auto* plan = std::get_if<actors::step_plan_ptr>(&action)) {
      sent_.push_back(std::move(*plan));
    } else if (auto* change = std::get_if<actors::kv_change>(&action)) {
      began = thread_seconds();
      auto grant = actors::apply_change(pool_, *change);
      spent.allocator += thread_seconds() - began;
      core_.granted(std::move(grant), now);
    } else {
      return;
    }
  }
}

actors::step_result load_batcher::results_of(const actors::step_plan& plan) {
  actors::step_result result;
  result.generation = plan.generation;
  result.number = plan.number;
  result.seconds = 0.01;
  for (actors::sequence_id id : plan.closes)
    outputs_.erase(id);
  for (const auto& opened : plan.opens)
    outputs_[opened.id] = opened.spec.max_new - static_cast<std::int32_t>(opened.output.size());
  for (const auto& row : plan.rows) {
    if (!row.draws || outputs_[row.id]-- <= 0) continue;
    actors::drawn_token drawn;
    drawn.id = row.id;
    drawn.token = static_cast<std::int32_t>(row.first_position);
    result.drawn.push_back(drawn);
  }
  return result;
}

plan_seconds load_batcher::step() {
  plan_seconds spent;
  const auto plan_back = sent_.front();
  sent_.erase(sent_.begin());
  const auto result = results_of(*plan_back);
  const double began = thread_seconds();
  core_.step_done(result, clock::now());
  spent.results = thread_seconds() - began;
  plan(spent);
  return spent;
}

} // namespace twill::bench
