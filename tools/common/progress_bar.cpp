#include "tools/common/progress_bar.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#include "config/base/units.hpp"
#include "tools/common/terminal.hpp"

namespace twill::tools {

progress_bar::progress_bar(bool quiet) : visible_(!quiet && is_terminal(stream::error)) {}

void progress_bar::show(std::int64_t done_bytes, std::int64_t total_bytes) {
  done_ = done_bytes;
  total_ = total_bytes;
  if (!visible_) return;
  const auto now = clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  draw(std::chrono::duration<double>(now - start_).count());
}

void progress_bar::draw(double seconds) {
  constexpr int width = 30;
  const double share = total_ > 0 ? static_cast<double>(done_) / static_cast<double>(total_) : 0;
  const double rate = seconds > 0 ? static_cast<double>(done_) / seconds : 0;
  const double left = rate > 0 ? static_cast<double>(total_ - done_) / rate : 0;
  const auto filled = static_cast<std::size_t>(std::min(share, 1.0) * width);
  const std::string bar = std::string(filled, '#') + std::string(width - filled, '.');
  std::fprintf(stderr, "\r[%s] %3.0f %%  %s of %s  %s/s  %.0f s left\x1b[K", bar.c_str(),
               100 * share, format_bytes(done_).c_str(), format_bytes(total_).c_str(),
               format_bytes(static_cast<std::int64_t>(rate)).c_str(), left);
  std::fflush(stderr);
}

void progress_bar::finish(bool succeeded) {
  if (!visible_) return;
  if (succeeded && total_ > 0) draw(std::chrono::duration<double>(clock::now() - start_).count());
  std::fputc('\n', stderr);
}

} // namespace twill::tools
