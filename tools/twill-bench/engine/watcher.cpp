#include "tools/twill-bench/engine/watcher.hpp"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tools/twill-bench/engine/text.hpp"

namespace twill::bench {

std::string progress_line(std::size_t ended, std::size_t total, std::int64_t output_tokens,
                          double elapsed_s, double seconds_after) {
  constexpr std::size_t width = 24;
  const std::size_t filled = total == 0 ? width : width * ended / total;
  std::string bar(filled, '=');
  if (filled < width) bar += '>';
  bar.resize(width, ' ');
  const double rate = elapsed_s > 0 ? double(ended) / elapsed_s : 0;
  const double tokens = elapsed_s > 0 ? double(output_tokens) / elapsed_s : 0;
  std::array<char, 160> line{};
  int used = std::snprintf(line.data(), line.size(), "%7zu/%zu [%s] %7.1f req/s %8.0f tok/s", ended,
                           total, bar.c_str(), rate, tokens);
  if (rate > 0)
    std::snprintf(line.data() + used, line.size() - static_cast<std::size_t>(used), "  ETA %s",
                  duration_text(double(total - ended) / rate + seconds_after).c_str());
  return line.data();
}

progress_style progress_style::on_terminal(bool wanted) {
  return {wanted && isatty(STDERR_FILENO) == 1, {}, 0};
}

watcher::watcher(const progress_counts& counts, progress_style style, std::function<void()> on_stop,
                 std::function<void(double)> on_tick)
    : style_(std::move(style)) {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  thread_ = std::thread([this, &counts, stop = std::move(on_stop), tick = std::move(on_tick)] {
    watch(counts, stop, tick);
  });
}

watcher::~watcher() {
  over_ = true;
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void watcher::watch(const progress_counts& counts, const std::function<void()>& on_stop,
                    const std::function<void(double)>& on_tick) {
  const auto begin = std::chrono::steady_clock::now();
  bool stopping = false;
  while (!over_) {
    const timespec tick{0, 100'000'000};
    if (sigtimedwait(&signals_, nullptr, &tick) > 0) {
      if (stopping) std::_Exit(130);
      stopping = true;
      on_stop();
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    if (on_tick) on_tick(elapsed.count());
    if (style_.show)
      std::fprintf(stderr, "\r\033[K%s%s", style_.label.c_str(),
                   progress_line(counts.ended, counts.total, counts.output_tokens, elapsed.count(),
                                 style_.seconds_after)
                       .c_str());
  }
  if (style_.show) std::fprintf(stderr, "\r\033[K");
}

} // namespace twill::bench
