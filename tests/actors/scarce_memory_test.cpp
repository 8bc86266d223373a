// Allocations that fail at random: operator new of this program fails at a seeded rate, in any
// thread, as it would where memory is short for a moment.
#include "config/base/scarce_memory.hpp"

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "tests/actors/scripted_runner.hpp"
#include "tests/catch.hpp"

namespace {

/// Out of 65536 allocations so many fail.
std::atomic<unsigned> failing{0};
std::atomic<std::uint64_t> draws{0}, n_failed{0};
std::atomic<std::uint64_t> seed{1};

bool fails() {
  const unsigned rate = failing.load(std::memory_order_relaxed);
  if (rate == 0) return false;
  std::uint64_t x = seed + 0x9e3779b97f4a7c15ULL * ++draws;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  if ((x >> 48) >= rate) return false;
  ++n_failed;
  return true;
}

} // namespace

// What the standard says of operator new, apart from the failures. Inlined, its malloc would look
// like a mismatch to the compiler.
[[gnu::noinline]] void* operator new(std::size_t size) {
  for (;;) {
    if (!fails())
      if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

using namespace scripted;
using actors::errc;

namespace {

struct at_rate {
  at_rate(unsigned per_65536, std::uint64_t with_seed) {
    seed = with_seed;
    n_failed = 0;
    failing = per_65536;
  }
  ~at_rate() { failing = 0; }
};

/// Requests while allocations fail; how many of them failed. After that the engine must serve.
int live_through(unsigned per_65536, std::uint64_t with_seed) {
  auto plan = std::make_shared<script>();
  plan->fail_at = 20; // reloads happen meanwhile
  config::options options;
  options.scheduler.restart_delay = options.scheduler.restart_delay_max = 1ms;
  bench b(options, plan);
  REQUIRE(b.ready());
  std::vector<recorder> all(40);
  std::vector<actors::request> asked;
  for (int i = 0; i < 40; ++i) {
    asked.push_back(text_request(prompt_of(i, 9), 20));
    asked.back().sampling.ignore_eos = true;
    if (i % 8 == 5) asked.back().timeout = 5s;
  }
  std::vector<actors::event_callback> callbacks;
  for (recorder& r : all)
    callbacks.push_back(r.callback());
  bool over = true;
  {
    const at_rate scarce(per_65536, with_seed);
    for (std::size_t i = 0; i < all.size(); ++i)
      b.port.submit(std::move(asked[i]), std::move(callbacks[i]));
    for (recorder& r : all)
      over = r.wait_over() && over;
  }
  REQUIRE(over);
  int failed = 0;
  for (int i = 0; i < 40; ++i) {
    const recorder& r = all[static_cast<std::size_t>(i)];
    if (r.error())
      ++failed;
    else
      CHECK(r.text() == solo(prompt_of(i, 9), 20, 0, 0, 0, true).text);
  }
  recorder after;
  b.port.submit(text_request("after", 10), after.callback());
  REQUIRE(after.wait_over());
  CHECK_FALSE(after.error());
  std::atomic<bool> drained{false};
  b.port.drain([&] { drained = true; });
  CHECK(eventually([&] { return drained.load(); }));
  return failed;
}

} // namespace

TEST_CASE("memory that is short for moments costs no request", "[actors]") {
  prepare_for_scarce_memory(1 << 20);
  for (std::uint64_t s = 1; s <= 5; ++s) {
    live_through(300, s);
    CHECK(n_failed > 20);
  }
  std::set_new_handler(nullptr);
}

TEST_CASE("the reserve is used once, waited for, and taken again") {
  prepare_for_scarce_memory(1 << 20);
  const std::new_handler handler = std::get_new_handler();
  CHECK_NOTHROW(handler()); // the reserve
  int n = 0;
  const auto begun = std::chrono::steady_clock::now();
  try {
    for (; n < 1000; ++n)
      handler();
  } catch (const std::bad_alloc&) {
  }
  CHECK(n == 50);
  CHECK(std::chrono::steady_clock::now() - begun < 5s);
  restore_memory_reserve();
  for (int i = 0; i < 40; ++i)
    CHECK_NOTHROW(handler());
  std::set_new_handler(nullptr);
}
