#include "tests/catch.hpp"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "gpu/host/thread_pool.hpp"

using twill::gpu::host::thread_pool;

TEST_CASE("every part of every job runs exactly once") {
  for (std::int32_t threads : {1, 2, 3, 8}) {
    thread_pool t(threads);
    CHECK(t.threads() == threads);
    for (int job = 0; job < 2000; ++job) {
      const int parts = job % 13;
      std::vector<int> runs(static_cast<std::size_t>(parts), 0);
      t.run(parts, [&](std::int64_t part) { ++runs[static_cast<std::size_t>(part)]; });
      REQUIRE(runs == std::vector<int>(static_cast<std::size_t>(parts), 1));
    }
  }
}

TEST_CASE("no two calls at a time have the same thread") {
  thread_pool t(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<int> clashes{0};
  for (int job = 0; job < 200; ++job)
    t.run(job % 40, [&](std::int64_t, std::int32_t thread) {
      std::atomic<int>& here = inside[static_cast<std::size_t>(thread)];
      if (here.fetch_add(1) != 0) ++clashes;
      for (int i = 0; i < 50; ++i)
        std::atomic_signal_fence(std::memory_order_seq_cst);
      here.fetch_sub(1);
    });
  CHECK(clashes == 0);
}

TEST_CASE("what a thread does not come to, others do") {
  thread_pool t(2);
  // The first part waits for all others, even those in the share of its own thread.
  std::atomic<int> rest{0};
  bool all_came = false;
  t.run(8, [&](std::int64_t part) {
    if (part != 0) {
      ++rest;
      return;
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (rest < 7 && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    all_came = rest == 7;
  });
  CHECK(all_came);
}

TEST_CASE("workers that fell asleep take part again") {
  thread_pool t(4);
  for (int job = 0; job < 20; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> sum{0};
    t.run(100, [&](std::int64_t part) { sum += static_cast<int>(part); });
    REQUIRE(sum == 4950);
  }
}

TEST_CASE("a thread_pool may end at any time between jobs") {
  for (int i = 0; i < 200; ++i) {
    thread_pool t(3);
    std::atomic<int> runs{0};
    if (i % 2 == 0) t.run(5, [&](std::int64_t) { ++runs; });
    REQUIRE(runs == (i % 2 == 0 ? 5 : 0));
  }
}
