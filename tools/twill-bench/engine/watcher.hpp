// watcher: waits for SIGINT and SIGTERM and draws a progress line during a run.
//
// It has a thread of its own. While it lives, SIGINT and SIGTERM are blocked in the thread that
// constructed it and in threads created after it. So construct it before the run, on the thread
// that calls run(). The first signal calls on_stop, the second one ends the process. The line is
// written to standard error, and only when that is a terminal.
#pragma once

#include <csignal>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "tools/twill-bench/engine/run.hpp"

namespace twill::bench {

/// What the progress line shows besides the counts of the run.
struct progress_style {
  bool show = false;
  std::string label;        ///< before the bar
  double seconds_after = 0; ///< time for work after this run, added to the time left

  /// A style that shows the line when `wanted` is true and standard error is a terminal.
  static progress_style on_terminal(bool wanted);
};

class watcher {
public:
  /// `on_tick`, if given, is called ten times a second with the seconds since the watcher was
  /// constructed.
  watcher(const progress_counts& counts, progress_style style, std::function<void()> on_stop,
          std::function<void(double)> on_tick = {});
  ~watcher();
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;

private:
  void watch(const progress_counts& counts, const std::function<void()>& on_stop,
             const std::function<void(double)>& on_tick);

  progress_style style_;
  sigset_t signals_{};
  sigset_t before_{};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

/// "  120/1000 [===>      ]  12.1 req/s  1543 tok/s  ETA 73 s"
std::string progress_line(std::size_t ended, std::size_t total, std::int64_t output_tokens,
                          double elapsed_s, double seconds_after = 0);

} // namespace twill::bench
