#include "tools/common/hub/fetch_report.hpp"

#include <algorithm>
#include <utility>

#include "config/base/units.hpp"
#include "tools/common/terminal.hpp"

namespace twill::tools::hub {
namespace {

constexpr std::int64_t worth_a_bar = 4 << 20; ///< smaller downloads end before a bar could be read,
                                              ///< so none is shown

std::string time_words(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 100) return std::to_string(whole) + " s";
  if (whole < 100 * 60) return std::to_string(whole / 60) + " min";
  return std::to_string(whole / 3600) + " h";
}

} // namespace

fetch_report::fetch_report(std::function<void(const std::string&)> say,
                           std::chrono::milliseconds between_lines)
    : say_(std::move(say)), between_lines_(between_lines) {}

void fetch_report::show(std::int64_t done_bytes, std::int64_t total_bytes) {
  if (total_bytes < worth_a_bar) return;
  const auto now = clock::now();
  if (total_bytes != total_) {
    finish();
    total_ = total_bytes;
    start_ = last_ = now;
    bar_ = progress_bar(false);
  }
  if (is_terminal(stream::error)) {
    bar_.show(done_bytes, total_bytes);
    is_drawn_ = true;
    return;
  }
  if (now - last_ < between_lines_) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done_bytes) / std::max(seconds, 1e-3);
  say_("fetched " + format_bytes(done_bytes) + " of " + format_bytes(total_bytes) + ", " +
       format_bytes(static_cast<std::int64_t>(rate)) + "/s, " +
       time_words(static_cast<double>(total_bytes - done_bytes) / std::max(rate, 1.0)) + " left");
}

void fetch_report::say(const std::string& line) {
  finish();
  say_(line);
}

void fetch_report::finish() {
  if (is_drawn_) bar_.finish(true);
  is_drawn_ = false;
}

} // namespace twill::tools::hub
