#include "net/connection/output_budget.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace twill::net {
namespace {

/// A client that has taken no bytes for this long counts as one that does not read.
constexpr std::chrono::seconds silent_after{1};

} // namespace

output_budget::account::account(output_budget& owner, std::function<void()> cut)
    : owner_(owner), cut_(std::move(cut)) {
  const std::lock_guard lock(owner_.mutex_);
  owner_.accounts_.insert(this);
}

output_budget::account::~account() {
  set(0);
  const std::lock_guard lock(owner_.mutex_);
  owner_.accounts_.erase(this);
}

void output_budget::account::set(std::int64_t bytes) {
  const auto before = bytes_.exchange(bytes, std::memory_order_relaxed);
  if (bytes == before) return;
  const auto total =
      owner_.total_.fetch_add(bytes - before, std::memory_order_relaxed) + bytes - before;
  const bool filled = total > owner_.max_bytes_ && total - (bytes - before) <= owner_.max_bytes_;
  if (filled && owner_.on_full_) owner_.on_full_();
}

std::size_t output_budget::relieve(time now) {
  const std::lock_guard lock(mutex_);
  std::vector<account*> silent;
  auto left = total_.load();
  for (const auto* one : accounts_)
    if (one->is_cut_) left -= one->bytes_.load();
  for (auto* one : accounts_) {
    const auto bytes = one->bytes_.load();
    const auto taken = one->taken_.load(std::memory_order_relaxed);
    if (bytes == 0 || taken != one->seen_taken_) {
      one->seen_taken_ = taken;
      one->seen_at_ = now;
    }
    const bool is_silent = now - one->seen_at_ >= silent_after;
    // Above twice the budget every client with waiting bytes may be cut off, even one that reads.
    if (!one->is_cut_ && bytes > 0 && (is_silent || left > 2 * max_bytes_)) silent.push_back(one);
  }
  std::sort(silent.begin(), silent.end(),
            [](const account* a, const account* b) { return a->bytes_ > b->bytes_; });
  std::size_t n_cut = 0;
  for (auto* one : silent) {
    if (left <= max_bytes_ / 2) break;
    left -= one->bytes_.load();
    one->is_cut_ = true;
    one->cut_();
    ++n_cut;
  }
  return n_cut;
}

} // namespace twill::net
