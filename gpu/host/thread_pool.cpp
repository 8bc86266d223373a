#include "gpu/host/thread_pool.hpp"

#include <algorithm>
#include <chrono>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace twill::gpu::host {

namespace {

using clock = std::chrono::steady_clock;

/// How long idle threads spin: longer than the gap between two launches of a forward pass, and
/// short enough to cost other processes little.
constexpr std::chrono::microseconds spin_time{60};

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Bytes prefetched between two checks of whether a wait is over.
constexpr std::int64_t fetched_at_once = 1024;
/// The most bytes that a thread prefetches of its share: about half of a core's second-level cache.
constexpr std::int64_t most_fetched = 512 << 10;

/// Spins until ready() returns true or the spin time is over, and calls idle() while it spins.
/// Returns whether ready() returned true.
template <class Ready, class Idle>
bool spin(const Ready& ready, const Idle& idle) {
  for (const auto end = clock::now() + spin_time;;) {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      idle();
      relax();
    }
    if (clock::now() >= end) return false;
  }
}

std::uint32_t number_of(std::uint64_t job) {
  return static_cast<std::uint32_t>(job >> 32);
}
std::uint32_t left_of(std::uint64_t job) {
  return static_cast<std::uint32_t>(job);
}

} // namespace

thread_pool::thread_pool(std::int32_t threads)
    : shares_(static_cast<std::size_t>(threads)), progress_(static_cast<std::size_t>(threads)) {
  for (std::int32_t i = 1; i < threads; ++i)
    workers_.emplace_back([this, i] { work(i); });
}

thread_pool::~thread_pool() {
  stop_.store(true);
  wake_.fetch_add(1);
  wake_.notify_all();
  for (std::thread& worker : workers_)
    worker.join();
}

void thread_pool::read_ahead(const std::array<range, 2>& next) {
  for (std::size_t r = 0; r < next.size(); ++r) {
    ahead_[r].data.store(static_cast<const char*>(next[r].data), std::memory_order_relaxed);
    ahead_[r].bytes.store(next[r].bytes, std::memory_order_relaxed);
  }
  ahead_calls_.fetch_add(1, std::memory_order_release);
}

void thread_pool::fetch_some(std::int32_t index) {
  progress& mine = progress_[static_cast<std::size_t>(index)];
  const auto threads = static_cast<std::int64_t>(progress_.size()); // workers_ may still grow
  if (const std::uint32_t calls = ahead_calls_.load(std::memory_order_acquire);
      calls != mine.seen) {
    mine.seen = calls;
    mine.fetched[0] = mine.fetched[1] = 0;
  }
  // If another thread changes a range while it is read here, the only effect is useless prefetches.
  for (std::size_t r = 0; r < 2; ++r) {
    const std::int64_t share = ahead_[r].bytes.load(std::memory_order_relaxed) / threads;
    const std::int64_t end = std::min({share, most_fetched, mine.fetched[r] + fetched_at_once});
    if (mine.fetched[r] >= end) continue;
    const char* data = ahead_[r].data.load(std::memory_order_relaxed) + share * index;
    for (; mine.fetched[r] < end; mine.fetched[r] += 64)
      __builtin_prefetch(data + mine.fetched[r], 0, 2);
    return;
  }
}

std::uint32_t thread_pool::first_part(std::uint32_t parts, std::int32_t index) const {
  const std::uint64_t all = shares_.size(); // workers_ may still grow
  return static_cast<std::uint32_t>(
      (std::uint64_t{parts} * static_cast<std::uint64_t>(index) + all - 1) / all);
}

void thread_pool::run_job(std::uint32_t parts, call c, const void* body) {
  const std::uint32_t number = job_.load(std::memory_order_relaxed) + 1;
  done_.store(0, std::memory_order_relaxed);
  call_.store(c, std::memory_order_relaxed);
  body_.store(body, std::memory_order_relaxed);
  parts_.store(parts, std::memory_order_relaxed);
  for (std::int32_t i = 0; i < threads(); ++i)
    shares_[static_cast<std::size_t>(i)].left.store(
        std::uint64_t{number} << 32 | (first_part(parts, i + 1) - first_part(parts, i)),
        std::memory_order_relaxed);
  // This store and the accesses of await_job() are sequentially consistent: a worker that is about
  // to sleep either sees the new job, or this thread sees the worker in sleepers_.
  job_.store(number);
  if (sleepers_.load() > 0) {
    wake_.fetch_add(1);
    wake_.notify_all();
  }
  help(number, 0);
  const auto finished = [&] { return done_.load(std::memory_order_acquire) == parts; };
  if (spin(finished, [&] { fetch_some(0); })) return;
  for (std::uint32_t seen = done_.load(std::memory_order_acquire); seen != parts;
       seen = done_.load(std::memory_order_acquire))
    done_.wait(seen, std::memory_order_acquire);
}

void thread_pool::help(std::uint32_t number, std::int32_t index) {
  const call c = call_.load(std::memory_order_relaxed);
  const void* body = body_.load(std::memory_order_relaxed);
  const std::uint32_t parts = parts_.load(std::memory_order_relaxed);
  const auto all = static_cast<std::int32_t>(shares_.size());
  for (std::int32_t i = 0; i < all; ++i) {
    const std::int32_t owner = index + i < all ? index + i : index + i - all;
    std::atomic<std::uint64_t>& share = shares_[static_cast<std::size_t>(owner)].left;
    std::uint64_t left = share.load(std::memory_order_acquire);
    while (number_of(left) == number && left_of(left) > 0) {
      // If the claim succeeds, the fields read above belonged to this job.
      if (!share.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire))
        continue;
      c(body, first_part(parts, owner + 1) - left_of(left), index);
      if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == parts) done_.notify_one();
      left = share.load(std::memory_order_acquire);
    }
  }
}

void thread_pool::work(std::int32_t index) {
  for (std::uint32_t seen = 0; !stop_.load(std::memory_order_relaxed);) {
    seen = await_job(seen, index);
    help(seen, index);
  }
}

std::uint32_t thread_pool::await_job(std::uint32_t seen, std::int32_t index) {
  const auto other = [&] {
    return job_.load(std::memory_order_acquire) != seen || stop_.load(std::memory_order_relaxed);
  };
  while (!spin(other, [&] { fetch_some(index); })) {
    const std::uint32_t seen_wakes = wake_.load();
    sleepers_.fetch_add(1);
    if (job_.load() == seen && !stop_.load()) wake_.wait(seen_wakes);
    sleepers_.fetch_sub(1);
  }
  return job_.load(std::memory_order_acquire);
}

} // namespace twill::gpu::host
