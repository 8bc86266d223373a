#include "net/connection/input_budget.hpp"

#include <algorithm>
#include <utility>

namespace twill::net {
namespace {

/// A client is slow if it has sent less than the least rate requires over at least this long.
constexpr std::chrono::seconds slow_after{1};
/// Minimum time between two searches of all accounts for slow messages.
constexpr std::chrono::milliseconds look_interval{100};

double seconds(input_budget::clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

} // namespace

bool input_budget::account::set(std::int64_t bytes, time now) {
  if (bytes == 0) {
    clear();
    return true;
  }
  std::vector<std::function<void()>> others;
  bool fits = true;
  {
    const std::lock_guard lock(owner_.mutex_);
    if (owner_.accounts_.insert(this).second) mark_time_ = now;
    owner_.total_ += bytes - bytes_;
    if (is_cut_) owner_.given_up_ += bytes - bytes_;
    bytes_ = bytes;
    if (static_cast<double>(bytes - mark_bytes_) >=
        owner_.least_rate_ * seconds(now - mark_time_)) {
      mark_bytes_ = bytes;
      mark_time_ = now;
    }
    if (owner_.total_ - owner_.given_up_ > owner_.max_bytes_) others = owner_.make_room(now);
    fits = !is_cut_ && owner_.total_ - owner_.given_up_ <= owner_.max_bytes_ &&
           owner_.total_ <= 2 * owner_.max_bytes_;
    if (!fits) owner_.forget(*this);
  }
  for (const auto& give_up : others)
    give_up();
  return fits;
}

void input_budget::account::clear() {
  if (bytes_ == 0) return;
  const std::lock_guard lock(owner_.mutex_);
  owner_.forget(*this);
}

bool input_budget::account::is_cut() const {
  const std::lock_guard lock(owner_.mutex_);
  return is_cut_;
}

void input_budget::forget(account& which) {
  accounts_.erase(&which);
  total_ -= which.bytes_;
  if (which.is_cut_) given_up_ -= which.bytes_;
  which.bytes_ = which.mark_bytes_ = 0;
  which.is_cut_ = false;
}

bool input_budget::is_slow(const account& which, time now) const {
  const auto passed = now - which.mark_time_;
  return passed >= slow_after &&
         static_cast<double>(which.bytes_ - which.mark_bytes_) < least_rate_ * seconds(passed);
}

/// Marks slow messages (those that arrive at less than `server.body_rate`) as given up, the largest
/// first, until half of the budget is free or no slow message is left. Returns the `give_up`
/// functions that the caller must call after it has released the mutex.
std::vector<std::function<void()>> input_budget::make_room(time now) {
  if (now - looked_at_ < look_interval) return {};
  looked_at_ = now;
  std::vector<account*> slow;
  for (auto* one : accounts_)
    if (!one->is_cut_ && is_slow(*one, now)) slow.push_back(one);
  std::sort(slow.begin(), slow.end(),
            [](const account* a, const account* b) { return a->bytes_ > b->bytes_; });
  std::vector<std::function<void()>> calls;
  for (auto* one : slow) {
    if (total_ - given_up_ <= max_bytes_ / 2) break;
    calls.push_back(one->give_up_);
    one->is_cut_ = true;
    given_up_ += one->bytes_;
  }
  return calls;
}

std::int64_t input_budget::total_bytes() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

} // namespace twill::net
