#include "tools/twill-bench/plan/load_batcher.hpp"

#include <ctime>

#include <chrono>
#include <utility>
#include <variant>

#include "actors/kv/apply_change.hpp"

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
