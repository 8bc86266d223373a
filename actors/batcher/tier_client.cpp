#include "actors/batcher/tier_client.hpp"

#include <algorithm>

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

} // namespace twill::actors
