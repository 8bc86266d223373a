// log_writer: a thread that writes the lines of a log to a file descriptor, so that no other thread
// waits when the descriptor accepts nothing: a full pipe, a stopped terminal, a disk that hangs.
//
// Thread safety: any thread may call any function. put() holds a lock only while it copies the
// line. Invariants: lines are written whole, in the order of their put() calls. As many lines as
// fit PIPE_BUF bytes are written at once, so that other processes that write to the same pipe do
// not split them. Waiting lines are bounded: a line that does not fit is dropped and counted, and
// so are later lines until half of the bound is free. A notice in their place says how many lines
// were dropped. Lines that the descriptor refuses with an error are counted as well. The destructor
// waits until all lines are written.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace twill::log {

/// Writes all of `text`, and waits as long as that takes. Returns false if the descriptor failed.
bool write_whole(int file, std::string_view text);

class log_writer {
public:
  using clock = std::chrono::steady_clock;

  /// A function that makes the line which says how many lines were lost. The writing thread calls
  /// it while it holds no lock.
  using notice = std::function<std::string(std::uint64_t lost)>;

  log_writer(int file, std::size_t most_bytes, notice of_lost);
  ~log_writer();
  log_writer(const log_writer&) = delete;
  log_writer& operator=(const log_writer&) = delete;

  /// `line` ends with its line feed. Never waits for the descriptor.
  void put(std::string_view line);

  /// Waits until all lines are written or the time has passed; returns whether all were written.
  bool flush(std::chrono::milliseconds longest) const;

  /// Lines since the start that were not written.
  std::uint64_t dropped() const;
  /// Whether lines are being dropped, or the descriptor has accepted nothing of a line for a
  /// second.
  bool is_blocked() const;

  /// Lines that are not written yet. Safe in a signal handler.
  std::size_t unwritten() const noexcept { return unwritten_; }

private:
  struct entry {
    std::string line;
    std::uint64_t lost = 0; ///< > 0: this entry is a notice about so many lost lines
  };
  struct chunk {
    std::string text;
    std::size_t n_lines = 0;
    std::uint64_t lost = 0; ///< the number of lost lines, if the chunk is a notice
  };

  void run();
  chunk take();
  bool write(chunk& taken) const;
  void lose(std::uint64_t n_lines);
  void queue_notice();

  const int file_;
  const std::size_t most_bytes_;
  const notice of_lost_;
  mutable std::mutex mutex_; ///< guards what follows
  mutable std::condition_variable changed_, written_;
  std::deque<entry> queue_;
  std::size_t waiting_bytes_ = 0; ///< bytes in the queue
  bool dropping_ = false;
  bool stopping_ = false;
  std::uint64_t dropped_ = 0;
  std::uint64_t unreported_ = 0; ///< the part of `dropped_` that no notice has reported yet
  clock::time_point writing_since_{};
  std::atomic<std::size_t> unwritten_{0}; ///< changes under the mutex
  std::thread thread_;
};

/// From now on, SIGABRT, SIGSEGV, SIGBUS, SIGFPE and SIGILL wait up to one second for this writer
/// to write its remaining lines, and then end the process as usual. A signal that already has a
/// handler keeps it. Call it once; the writer must never be destroyed.
void write_before_crashes(const log_writer& writer);

} // namespace twill::log
