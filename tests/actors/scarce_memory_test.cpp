// Allocations that fail at random: this program replaces operator new by one that fails at a seeded
// rate, in any thread, as if memory were short for a moment.
#include "config/base/scarce_memory.hpp"

#include <atomic>
#include <cstdlib>
#include <deque>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "actors/engine/text_port.hpp"
#include "actors/pool/model_pool.hpp"
#include "models/offload/streams/io_threads.hpp"
#include "tests/actors/engine_fixture.hpp"
#include "tests/catch.hpp"

namespace {

/// How many of 65536 allocations fail.
std::atomic<unsigned> failing{0};
std::atomic<std::uint64_t> draws{0}, n_failed{0};
std::atomic<std::uint64_t> seed{1};

/// The allocation of this thread that fails, counted from now; 0: none.
thread_local int failing_here = 0;
thread_local int n_failed_here = 0;

bool fails() {
  if (failing_here > 0 && --failing_here == 0) return ++n_failed_here > 0;
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

// Does what the standard demands of operator new, apart from the failures. It is not inlined: if it
// were, the compiler would see its malloc() and warn that operator delete frees the memory.
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

/// Runs requests while allocations fail; returns how many failed. After that the engine must serve.
int live_through(unsigned per_65536, std::uint64_t with_seed) {
  auto plan = std::make_shared<script>();
  plan->fail_at = 20; // the engine restarts meanwhile
  config::options options;
  options.scheduler.restart_delay = options.scheduler.restart_delay_max = 1ms;
  fixture b(options, plan);
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

namespace {

/// An engine whose requests are over at once. It allocates nothing that could fail.
class quick_engine final : public actors::engine, public actors::text_port {
public:
  actors::engine_port& port() override { return *this; }
  void reload(const config::options&) override {}
  actors::request_id submit(actors::request, actors::event_callback on_event) override {
    failing_here = 0; // allocations below are not the pool's
    actors::event over;
    over.finish = actors::finish_reason::stop;
    over.last = true;
    on_event(std::move(over));
    return 1;
  }
  void cancel(actors::request_id) override {}
  void pause(actors::request_id) override {}
  void resume(actors::request_id) override {}
  actors::engine_state state() const override { return actors::engine_state::ready; }
  std::string state_detail() const override { return ""; }
  std::vector<actors::model_info> models() const override { return {}; }
  actors::engine_stats stats() const override { return {}; }
  void drain(std::function<void()> drained) override { drained(); }
  void abort_all() override {}

private:
  actors::result<actors::served_model_ptr> text_model(const std::string&) const override {
    return failure{errc::unknown_model, "none"};
  }
};

/// Two models in a budget for one.
struct quick_pool {
  quick_pool() {
    for (const char* key : {"m0", "m1"})
      options.models.emplace_back().key = key;
    options.scheduler.restart_delay = options.scheduler.restart_delay_max = 1ms;
    actors::pool_parts parts;
    auto files = std::make_shared<models::model>();
    files->text = std::make_shared<byte_tokenizer>();
    parts.open = [files](std::size_t) -> actors::result<actors::opened_model> {
      return actors::opened_model{actors::make_served_text({}, files, 200), 10, 0};
    };
    parts.start = [](std::size_t, const actors::opened_model&, std::int64_t) {
      return std::make_unique<quick_engine>();
    };
    engine = actors::start_pool(options, 10, std::move(parts));
    REQUIRE(eventually([&] { return port().state() == actors::engine_state::ready; }));
  }
  actors::engine_port& port() { return engine->port(); }
  bool reaches(std::size_t m, actors::model_state wanted) {
    return eventually([&] { return port().models().at(m).state == wanted; });
  }
  /// Checks that no counter still includes a request that is over.
  void check_empty() {
    for (std::size_t m = 0; m < 2; ++m)
      CHECK(eventually([&] {
        const auto model = port().models().at(m);
        return model.requests_under_way == 0 && model.requests_waiting == 0;
      }));
    std::atomic<bool> drained{false};
    port().drain([&] { drained = true; });
    CHECK(eventually([&] { return drained.load(); }));
  }

  config::options options;
  std::unique_ptr<actors::engine> engine;
};

} // namespace

TEST_CASE("an allocation that fails in a pool of models costs no place", "[pool]") {
  for (const std::string model : {"m0", "m1", "nobody"}) {
    quick_pool pool;
    REQUIRE(pool.port().order_model("m0", actors::model_order::load).ok());
    REQUIRE(pool.reaches(0, actors::model_state::ready));
    int n = 0;
    do {
      if (model == "m1") { // m1 must sleep when the request arrives
        REQUIRE(pool.port().order_model("m1", actors::model_order::sleep).ok());
        REQUIRE(pool.reaches(1, actors::model_state::asleep));
      }
      auto asked = text_request(std::string(100, 'x'), 1);
      asked.model = model;
      asked.client = std::string(100, 'c');
      recorder r;
      auto callback = r.callback();
      n_failed_here = 0;
      failing_here = ++n;
      pool.port().submit(std::move(asked), std::move(callback));
      failing_here = 0;
      INFO(model << ", allocation " << n);
      REQUIRE(r.wait_over());
    } while (n_failed_here > 0);
    CHECK(n > 3);
    pool.check_empty();
  }
}

TEST_CASE("allocations that fail anywhere in a pool of models cost no place", "[pool]") {
  for (std::uint64_t s = 1; s <= 3; ++s) {
    quick_pool pool;
    std::deque<std::atomic<int>> over(60);
    {
      std::vector<actors::request> asked;
      std::vector<actors::event_callback> callbacks;
      for (std::size_t i = 0; i < over.size(); ++i) {
        asked.push_back(text_request(std::string(100, 'x'), 1));
        asked.back().model = i % 3 == 0 ? "m0" : "m1";
        callbacks.emplace_back([&over, i](const actors::event&) { ++over[i]; });
      }
      const at_rate scarce(4000, s);
      for (std::size_t i = 0; i < over.size(); ++i) {
        pool.port().submit(std::move(asked[i]), std::move(callbacks[i]));
        std::this_thread::sleep_for(1ms);
      }
      for (const auto& one : over)
        CHECK(eventually([&] { return one > 0; }));
    }
    for (const auto& one : over)
      CHECK(one == 1);
    CHECK(n_failed > 10);
    pool.check_empty();
  }
}

TEST_CASE("the reserve is used once, waited for, and taken again") {
  prepare_for_scarce_memory(1 << 20);
  const std::new_handler handler = std::get_new_handler();
  CHECK_NOTHROW(handler()); // gives up the reserve
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

TEST_CASE("I/O tasks that are posted together are all queued, or none where memory is short",
          "[actors]") {
  using models::offload::io_threads;
  for (const bool first : {false, true}) {
    int n_short = 0;
    for (bool queued = false; !queued; n_short += queued ? 0 : 1) {
      io_threads threads;
      std::promise<void> ends, all_ran;
      const auto user = threads.join({1, 1, 0});
      user->post([end = ends.get_future().share()](std::size_t) { end.wait(); });
      std::atomic<int> n_run{0};
      std::vector<io_threads::task> tasks(200, [&](std::size_t) { ++n_run; });
      failing_here = n_short + 1;
      try {
        user->post_all(std::move(tasks), first);
        queued = true;
      } catch (const std::bad_alloc&) {
      }
      failing_here = 0;
      user->post([&](std::size_t) { all_ran.set_value(); });
      ends.set_value();
      all_ran.get_future().wait();
      CHECK(n_run == (queued ? 200 : 0));
    }
    CHECK(n_short > 3);
  }
}
