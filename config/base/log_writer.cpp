#include "config/base/log_writer.hpp"

#include <cerrno>
#include <climits>
#include <csignal>
#include <ctime>
#include <new>
#include <poll.h>
#include <unistd.h>
#include <utility>

namespace twill::log {
namespace {

constexpr std::chrono::seconds blocked_time{1};
constexpr std::size_t undivided_bytes = PIPE_BUF;

} // namespace

bool write_whole(int file, std::string_view text) {
  while (!text.empty()) {
    const auto n = ::write(file, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
      // another process that shares the descriptor has made it non-blocking
    } else if (errno == EAGAIN) {
      pollfd room{file, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

log_writer::log_writer(int file, std::size_t most_bytes, notice of_lost)
    : file_(file), most_bytes_(most_bytes), of_lost_(std::move(of_lost)),
      thread_([this] { run(); }) {}

log_writer::~log_writer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void log_writer::put(std::string_view line) {
  {
    const std::lock_guard lock(mutex_);
    const bool fits = waiting_bytes_ == 0 || waiting_bytes_ + line.size() <= most_bytes_;
    if (!fits) dropping_ = true;
    if (dropping_ && waiting_bytes_ > most_bytes_ / 2) return lose(1);
    dropping_ = false;
    try {
      entry added{std::string(line), 0};
      queue_notice();
      queue_.push_back(std::move(added));
    } catch (const std::bad_alloc&) {
      return lose(1);
    }
    waiting_bytes_ += line.size();
    unwritten_ = unwritten_ + 1;
  }
  changed_.notify_one();
}

void log_writer::lose(std::uint64_t n_lines) {
  dropped_ += n_lines;
  unreported_ += n_lines;
}

/// Queues a notice at the place of the dropped lines.
void log_writer::queue_notice() {
  if (unreported_ == 0) return;
  queue_.push_back({{}, unreported_});
  unreported_ = 0;
}

bool log_writer::flush(std::chrono::milliseconds longest) const {
  std::unique_lock lock(mutex_);
  return written_.wait_for(lock, longest, [this] { return unwritten_ == 0 && queue_.empty(); });
}

std::uint64_t log_writer::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

bool log_writer::is_blocked() const {
  const std::lock_guard lock(mutex_);
  return dropping_ ||
         (writing_since_ != clock::time_point{} && clock::now() - writing_since_ > blocked_time);
}

void log_writer::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    chunk taken = take();
    writing_since_ = clock::now();
    lock.unlock();
    const bool written = write(taken);
    lock.lock();
    writing_since_ = {};
    unwritten_ = unwritten_ - taken.n_lines;
    if (!written) {
      lose(taken.n_lines);
      unreported_ += taken.lost;
    } else if (queue_.empty()) {
      try {
        queue_notice();
      } catch (const std::bad_alloc&) { // the notice is queued with the next line instead
      }
    }
    if (!queue_.empty()) continue;
    dropping_ = false;
    written_.notify_all();
  }
}

/// Takes the lines from the front of the queue that are written at once, or one notice.
log_writer::chunk log_writer::take() {
  chunk taken{std::move(queue_.front().line), 1, queue_.front().lost};
  waiting_bytes_ -= taken.text.size();
  queue_.pop_front();
  if (taken.lost > 0) {
    taken.n_lines = 0;
    return taken;
  }
  while (!queue_.empty() && queue_.front().lost == 0 &&
         taken.text.size() + queue_.front().line.size() <= undivided_bytes) {
    const auto& line = queue_.front().line;
    try {
      taken.text += line;
    } catch (const std::bad_alloc&) {
      break; // a longer line is written alone
    }
    waiting_bytes_ -= line.size();
    ++taken.n_lines;
    queue_.pop_front();
  }
  return taken;
}

bool log_writer::write(chunk& taken) const {
  try {
    if (taken.lost > 0) taken.text = of_lost_(taken.lost);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return write_whole(file_, taken.text);
}

// --- crashes -------------------------------------------------------------------------------------

namespace {

const log_writer* writer_to_wait_for = nullptr;

void on_crash(int signal) {
  constexpr timespec millisecond{0, 1'000'000};
  for (int i = 0; i < 1000 && writer_to_wait_for->unwritten() > 0; ++i)
    ::nanosleep(&millisecond, nullptr);
  ::raise(signal); // the signal's default handler runs when this handler returns
}

} // namespace

void write_before_crashes(const log_writer& writer) {
  writer_to_wait_for = &writer;
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    struct sigaction before {};
    if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
    struct sigaction ours {};
    ours.sa_handler = on_crash;
    ours.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigemptyset(&ours.sa_mask);
    ::sigaction(signal, &ours, nullptr);
  }
}

} // namespace twill::log
