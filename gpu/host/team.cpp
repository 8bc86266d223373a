#include "gpu/host/team.hpp"

#include <chrono>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace twill::gpu::host {

namespace {

using clock = std::chrono::steady_clock;

/// Longer than the gap between two launches of a step, shorter than anyone would notice.
constexpr std::chrono::microseconds spin_time{60};

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Spins until `ready` or the spin time is over; whether it became ready.
template <class Ready>
bool spin(const Ready& ready) {
  for (const auto end = clock::now() + spin_time;;) {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
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

team::team(std::int32_t threads) {
  for (std::int32_t i = 1; i < threads; ++i)
    workers_.emplace_back([this] { work(); });
}

team::~team() {
  stop_.store(true);
  wake_.fetch_add(1);
  wake_.notify_all();
  for (std::thread& worker : workers_)
    worker.join();
}

void team::run_job(std::uint32_t parts, call c, const void* body) {
  const std::uint32_t number = number_of(job_.load(std::memory_order_relaxed)) + 1;
  done_.store(0, std::memory_order_relaxed);
  call_.store(c, std::memory_order_relaxed);
  body_.store(body, std::memory_order_relaxed);
  parts_.store(parts, std::memory_order_relaxed);
  // Sequentially consistent with await_job(): a worker that is about to sleep either sees this job
  // or is seen in sleepers_.
  job_.store(static_cast<std::uint64_t>(number) << 32 | parts);
  if (sleepers_.load() > 0) {
    wake_.fetch_add(1);
    wake_.notify_all();
  }
  help(number);
  const auto finished = [&] { return done_.load(std::memory_order_acquire) == parts; };
  if (spin(finished)) return;
  for (std::uint32_t seen = done_.load(std::memory_order_acquire); seen != parts;
       seen = done_.load(std::memory_order_acquire))
    done_.wait(seen, std::memory_order_acquire);
}

void team::help(std::uint32_t number) {
  std::uint64_t job = job_.load(std::memory_order_acquire);
  const call c = call_.load(std::memory_order_relaxed);
  const void* body = body_.load(std::memory_order_relaxed);
  const std::uint32_t parts = parts_.load(std::memory_order_relaxed);
  while (number_of(job) == number && left_of(job) > 0) {
    // The claim succeeding proves that the fields above were this job's.
    if (!job_.compare_exchange_weak(job, job - 1, std::memory_order_acq_rel,
                                    std::memory_order_acquire))
      continue;
    c(body, parts - left_of(job));
    job = job_.load(std::memory_order_acquire);
    if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == parts) done_.notify_one();
  }
}

void team::work() {
  for (std::uint32_t seen = 0; !stop_.load(std::memory_order_relaxed);) {
    seen = await_job(seen);
    help(seen);
  }
}

std::uint32_t team::await_job(std::uint32_t seen) {
  const auto other = [&] {
    return number_of(job_.load(std::memory_order_acquire)) != seen ||
           stop_.load(std::memory_order_relaxed);
  };
  while (!spin(other)) {
    const std::uint32_t ticket = wake_.load();
    sleepers_.fetch_add(1);
    if (number_of(job_.load()) == seen && !stop_.load()) wake_.wait(ticket);
    sleepers_.fetch_sub(1);
  }
  return number_of(job_.load(std::memory_order_acquire));
}

} // namespace twill::gpu::host
