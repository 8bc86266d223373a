// progress_bar: shows, on one line of a terminal, which share of the bytes of a long operation
// (such as a download) is done, its speed and the time left.
//
// Only one thread at a time may call it. It shows nothing when standard error is no terminal.
#pragma once

#include <chrono>
#include <cstdint>

namespace twill::tools {

class progress_bar {
public:
  explicit progress_bar(bool quiet);
  /// Draws the bar, at most ten times a second.
  void show(std::int64_t done_bytes, std::int64_t total_bytes);
  void finish(bool succeeded);

private:
  using clock = std::chrono::steady_clock;
  void draw(double seconds);

  bool visible_;
  clock::time_point start_ = clock::now();
  clock::time_point last_{};
  std::int64_t done_ = 0;
  std::int64_t total_ = 0;
};

} // namespace twill::tools
