// thread_pool: the host's compute threads, for kernels that are launched about a hundred times per
// forward pass.
//
// An OpenMP region waits until every thread has arrived, so a single thread that another process
// has displaced from its core stalls each launch for a scheduler time slice. In this pool threads
// claim the parts of a job one by one: first the parts of their own share, then unclaimed parts of
// the other threads' shares. A thread that is not running delays a job only if it has claimed a
// part. A share is a run of neighbouring parts, and every job is divided into shares in the same
// way. So if two kernels divide their rows into parts in the same way, a thread usually finds its
// rows of the second kernel in its core's caches.
//
// Thread safety: one thread at a time (the device's) may call run(); the calling thread works too,
// and run() returns when all parts are done. Idle workers spin for tens of microseconds, then
// sleep. Invariants: a part of job n is claimed only while job n is unfinished, because a share's
// count of unclaimed parts and the number of the job are one atomic word. The data that a job
// points to is written before these words and stays valid until the job's last part is done.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace twill::gpu::host {

class thread_pool {
public:
  /// `threads` (>= 1) includes the thread that calls run().
  explicit thread_pool(std::int32_t threads);
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;
  ~thread_pool();

  /// A range of memory that the next jobs will read from beginning to end. Until the next call of
  /// read_ahead(), waiting threads prefetch it into their cores' caches, each thread its own share.
  /// The memory is never dereferenced.
  struct range {
    const void* data = nullptr;
    std::int64_t bytes = 0;
  };
  void read_ahead(const std::array<range, 2>& next);

  std::int32_t threads() const { return static_cast<std::int32_t>(workers_.size()) + 1; }

  /// Calls f(part) or f(part, thread) for every part in [0, parts), in no particular order.
  /// `thread` is in [0, threads()), and simultaneous calls have different values of it. f must not
  /// throw.
  template <class F>
  void run(std::int64_t parts, const F& f) {
    const auto invoke = [](const void* body, std::int64_t part, std::int32_t thread) {
      const F& function = *static_cast<const F*>(body);
      if constexpr (std::is_invocable_v<const F&, std::int64_t, std::int32_t>)
        function(part, thread);
      else
        function(part);
    };
    if (parts == 1 || workers_.empty()) {
      for (std::int64_t part = 0; part < parts; ++part)
        invoke(&f, part, 0);
      return;
    }
    run_job(static_cast<std::uint32_t>(parts), invoke, &f);
  }

private:
  using call = void (*)(const void* body, std::int64_t part, std::int32_t thread);

  void run_job(std::uint32_t parts, call c, const void* body);
  /// The first part of the share of thread `index` (a share is a run of neighbouring parts of a
  /// job). For index == threads() it returns `parts`, the end of the last share. The share of the
  /// thread that calls run(), index 0, is never empty.
  std::uint32_t first_part(std::uint32_t parts, std::int32_t index) const;
  /// Claims and runs parts of job `number` until none are left, beginning with the share of thread
  /// `index`.
  void help(std::uint32_t number, std::int32_t index);
  void work(std::int32_t index);
  /// Waits for a job other than `seen`, or for the end of the pool, and returns the job's number.
  std::uint32_t await_job(std::uint32_t seen, std::int32_t index);
  /// Prefetches a little more of thread `index`'s share of the ranges of read_ahead().
  void fetch_some(std::int32_t index);

  struct alignas(64) share {
    std::atomic<std::uint64_t> left{0}; ///< number of the job << 32 | parts not yet claimed
  };
  struct published_range {
    std::atomic<const char*> data{nullptr};
    std::atomic<std::int64_t> bytes{0};
  };
  struct alignas(64) progress {
    std::uint32_t seen = 0;       ///< calls of read_ahead()
    std::int64_t fetched[2] = {}; ///< bytes of each range
  };

  std::vector<std::thread> workers_;
  std::vector<share> shares_;                     // (threads)
  alignas(64) std::atomic<std::uint32_t> job_{0}; ///< its number
  std::atomic<call> call_{nullptr};
  std::atomic<const void*> body_{nullptr};
  std::atomic<std::uint32_t> parts_{0};
  alignas(64) std::atomic<std::uint32_t> done_{0};
  alignas(64) std::atomic<std::uint32_t> wake_{0}; ///< counts jobs; sleepers wait on it
  published_range ahead_[2];
  std::atomic<std::uint32_t> ahead_calls_{0};
  std::vector<progress> progress_; // (threads) each thread's own
  std::atomic<std::int32_t> sleepers_{0};
  std::atomic<bool> stop_{false};
};

} // namespace twill::gpu::host
