// fetch_report: shows how far a download is: a bar where standard error is a terminal, else a line
// now and then. One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "tools/common/progress_bar.hpp"

namespace twill::tools::hub {

class fetch_report {
public:
  /// `say` writes one line; without a terminal it is called once in every `between_lines`.
  explicit fetch_report(std::function<void(const std::string&)> say,
                        std::chrono::milliseconds between_lines = std::chrono::seconds(10));

  /// Another total begins another download.
  void show(std::int64_t done_bytes, std::int64_t total_bytes);
  /// Writes a line below the bar, if there is one.
  void say(const std::string& line);
  /// Ends the bar's line.
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
