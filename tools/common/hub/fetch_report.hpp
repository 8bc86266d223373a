// fetch_report: shows the progress of a download: as a progress bar where standard error is a
// terminal, otherwise as a line of text from time to time. Only one thread at a time may call it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "tools/common/progress_bar.hpp"

namespace twill::tools::hub {

class fetch_report {
public:
  /// `say` writes one line. Where standard error is no terminal, progress lines are at least
  /// `between_lines` apart.
  explicit fetch_report(std::function<void(const std::string&)> say,
                        std::chrono::milliseconds between_lines = std::chrono::seconds(10));

  /// Shows the progress. A `total_bytes` other than that of the call before starts a new download.
  void show(std::int64_t done_bytes, std::int64_t total_bytes);
  /// Writes a line below the progress bar, if a bar is shown.
  void say(const std::string& line);
  /// Ends the line of the progress bar.
  void finish();

private:
  using clock = std::chrono::steady_clock;

  std::function<void(const std::string&)> say_;
  std::chrono::milliseconds between_lines_;
  std::int64_t total_ = -1;
  progress_bar bar_{false};
  bool is_drawn_ = false;
  clock::time_point start_{}, last_{};
};

} // namespace twill::tools::hub
