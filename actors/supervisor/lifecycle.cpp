#include "actors/supervisor/lifecycle.hpp"

#include <algorithm>
#include <utility>

namespace twill::actors {

namespace {

std::string seconds_text(lifecycle::duration d) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(d).count();
  if (ms % 1000 == 0) return std::to_string(ms / 1000) + " s";
  return std::to_string(ms) + " ms";
}

} // namespace

void lifecycle::begin() {
  orders_.push_back(start_executor{});
  executor_alive_ = true;
  executor_loading_ = true;
  orders_.push_back(load{++generation_, false});
}

void lifecycle::loaded(std::uint64_t generation, time_point now) {
  if (is_over() || generation != generation_ || !executor_loading_) return;
  executor_loading_ = false;
  executor_loaded_ = ever_loaded_ = true;
  if (!std::exchange(compiler_alive_, true)) orders_.push_back(start_compiler{});
  if (!std::exchange(scheduler_alive_, true)) orders_.push_back(start_scheduler{});
  orders_.push_back(serve{generation});
  phase_ = phase::ready;
  ready_since_ = now;
  detail_.clear();
}

void lifecycle::load_failed(std::uint64_t generation, const std::string& why, time_point now) {
  if (is_over() || generation != generation_ || !executor_loading_) return;
  executor_loading_ = false;
  if (ever_loaded_) return fail("reloading failed: " + why, now);
  phase_ = phase::failed;
  detail_ = why;
}

void lifecycle::step_failed(std::uint64_t generation, const std::string& why, time_point now) {
  if (is_over() || generation != generation_ || !executor_loaded_) return;
  fail("the executor failed: " + why, now);
}

void lifecycle::device_lost(std::uint64_t generation, const std::string& why) {
  if (is_over() || generation != generation_) return;
  executor_loaded_ = executor_loading_ = false;
  phase_ = phase::lost;
  retry_at_.reset();
  detail_ = "the device is lost: " + why;
  orders_.push_back(end_requests{detail_, true});
}

void lifecycle::executor_ended(const std::string& why, time_point now) {
  if (is_over() || !executor_alive_) return;
  executor_alive_ = executor_loaded_ = executor_loading_ = false;
  if (retry_at_) return; // the failure was counted already, and the retry starts a new executor
  fail("the executor ended: " + why, now);
}

void lifecycle::scheduler_ended(const std::string& why, time_point now) {
  if (is_over() || !scheduler_alive_) return;
  scheduler_alive_ = false;
  orders_.push_back(end_scheduler{});
  if (phase_ == phase::failed) return; // the next load starts a new scheduler
  const std::string reason = "the scheduler ended: " + why;
  if (!strike(now)) return give_up(reason, now);
  // The new batcher is started first, so that every request can move to it or ends.
  orders_.push_back(start_scheduler{});
  scheduler_alive_ = true;
  orders_.push_back(move_requests{
      "the server lost this request when its scheduler was restarted; retry the request"});
  phase_ = phase::restarting;
  detail_ = reason + "; it is restarted";
  if (!executor_loaded_) return; // a load or a retry is under way
  executor_loaded_ = false;
  executor_loading_ = true;
  orders_.push_back(load{++generation_, true});
}

void lifecycle::compiler_ended() {
  if (is_over()) return;
  orders_.push_back(start_compiler{});
  orders_.push_back(move_requests{
      "the server lost the grammar of this request when its compiler ended; retry the request"});
}

void lifecycle::woken(time_point now) {
  if (is_over() || !retry_at_ || now < *retry_at_) return;
  try_again(now);
}

void lifecycle::stop() {
  phase_ = phase::stopped;
  retry_at_.reset();
  orders_.clear();
}

std::vector<lifecycle::order> lifecycle::take_orders() {
  return std::exchange(orders_, {});
}

void lifecycle::fail(const std::string& why, time_point now) {
  executor_loaded_ = false;
  if (!strike(now)) return give_up(why, now);
  phase_ = phase::restarting;
  duration delay{};
  if (strikes_ > 1) {
    delay = delays_.first;
    for (int i = 2; i < strikes_ && delay < delays_.most; ++i)
      delay *= 2;
    delay = std::min(delay, delays_.most);
  }
  if (delay == duration{}) {
    detail_ = why + "; it is restarted";
    return try_again(now);
  }
  detail_ = why + "; it is restarted after " + seconds_text(delay);
  retry_at_ = now + delay;
  orders_.push_back(wake{*retry_at_});
}

bool lifecycle::strike(time_point now) {
  if (phase_ == phase::ready) {
    const auto forgiven = (now - ready_since_) / forgiving_time;
    strikes_ = static_cast<int>(std::max<std::int64_t>(0, strikes_ - forgiven));
  }
  strikes_ = std::min(strikes_ + 1, most_strikes + 1);
  return strikes_ <= most_strikes;
}

void lifecycle::give_up(const std::string& why, time_point now) {
  detail_ = why + "; this was failure " + std::to_string(most_strikes + 1) +
            " in a short time, so the next try is made after " + seconds_text(delays_.most);
  if (phase_ != phase::failed) orders_.push_back(end_requests{detail_});
  phase_ = phase::failed;
  executor_loaded_ = false;
  retry_at_ = now + delays_.most;
  orders_.push_back(wake{*retry_at_});
}

void lifecycle::try_again(time_point) {
  retry_at_.reset();
  if (!std::exchange(executor_alive_, true)) orders_.push_back(start_executor{});
  executor_loading_ = true;
  orders_.push_back(load{++generation_, false});
}

} // namespace twill::actors
