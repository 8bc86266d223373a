#include "tools/twill-bench/plan/load_batcher.hpp"

#include <ctime>

#include <chrono>
#include <optional>
#include <utility>

#include "actors/kv/apply_change.hpp"
#include "actors/kv/grant_blocks.hpp"

namespace twill::bench {
namespace {

using clock = std::chrono::steady_clock;

/// CPU seconds of this thread. They do not include time in which other programs use the core.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

} // namespace

load_batcher::load_batcher(const load_settings& settings)
    : pool_(blocks_for(settings), load_block_tokens), core_(limits_for(settings), stats_, *this),
      requests_(settings) {
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

void load_batcher::plan(plan_seconds& spent) {
  for (; missing_ > 0; --missing_)
    core_.submit(requests_.next());
  for (bool is_planned = true; is_planned;) {
    const double began = thread_seconds();
    const auto now = clock::now();
    auto plan = core_.plan(now);
    const auto change = core_.take_change();
    auto request = plan ? std::nullopt : core_.take_request();
    const double planned = thread_seconds();
    spent.plan += planned - began;
    is_planned = plan != nullptr || request.has_value();
    if (plan) sent_.push_back(std::move(plan));
    if (change) actors::apply_change(pool_, *change);
    auto grant = request ? actors::grant_blocks(pool_, *request) : actors::kv_grant{};
    spent.allocator += thread_seconds() - planned;
    if (request) core_.granted(std::move(grant), now);
  }
}

plan_seconds load_batcher::step() {
  plan_seconds spent;
  const auto plan_back = sent_.front();
  sent_.erase(sent_.begin());
  const auto result = results_.result_of(*plan_back);
  const double began = thread_seconds();
  core_.step_done(result, clock::now());
  spent.results = thread_seconds() - began;
  plan(spent);
  return spent;
}

} // namespace twill::bench
