// restart_limit: when to stop restarting something that keeps failing. Pure: the caller gives the
// time.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>

namespace twill::actors {

class restart_limit {
public:
  /// At most `most` failures within `window`; one more is too many.
  restart_limit(std::size_t most, std::chrono::steady_clock::duration window)
      : most_(most), window_(window) {}

  /// Notes a failure at `now`; false when it is one too many.
  bool allows(std::chrono::steady_clock::time_point now) {
    while (!failures_.empty() && now - failures_.front() > window_)
      failures_.pop_front();
    failures_.push_back(now);
    return failures_.size() <= most_;
  }

private:
  std::size_t most_;
  std::chrono::steady_clock::duration window_;
  std::deque<std::chrono::steady_clock::time_point> failures_;
};

} // namespace twill::actors
