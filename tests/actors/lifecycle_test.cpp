// Failures and shutdown of the engine: restarts of the executor, giving up after several failures,
// drain, abort, and destruction while requests run.
#include <atomic>
#include <ctime>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/actors/engine_fixture.hpp"
#include "tests/catch.hpp"

using namespace scripted;
using actors::engine_state;
using actors::errc;

namespace {

actors::request endless(const std::string& prompt, std::int32_t max_tokens) {
  auto asked = text_request(prompt, max_tokens);
  asked.sampling.ignore_eos = true;
  return asked;
}

} // namespace

TEST_CASE("an engine that is ready says what it took of the device", "[actors]") {
  fixture b({}, std::make_shared<script>());
  REQUIRE(b.ready());
  const auto stats = b.port.stats();
  CHECK(stats.kv_block_bytes == b.plan->block_tokens * 4);
  CHECK(stats.device_memory_reserved_bytes == stats.kv_block_bytes * b.plan->n_blocks);
}

TEST_CASE("a failed step fails its own requests; the others go on with the same tokens",
          "[actors]") {
  const bool by_throw = GENERATE(false, true);
  config::options options;
  options.scheduler.max_running = 3;
  auto plan = std::make_shared<script>();
  plan->fail_by_throw = by_throw;
  plan->hold();
  fixture b(options, plan);
  REQUIRE(b.ready());
  std::vector<recorder> all(6);
  std::vector<actors::request_id> ids;
  for (int i = 0; i < 4; ++i) {
    recorder& r = all[static_cast<std::size_t>(i)];
    ids.push_back(b.port.submit(endless(prompt_of(i, 9), 150), r.callback()));
    REQUIRE(eventually([&] { return r.n_events() > 0; })); // queued before the next request is sent
  }
  plan->allow(5);
  REQUIRE(all[0].wait_tokens(3));
  REQUIRE(plan->step_waits());
  // Request 0 is paused: it keeps its KV and its place, but is in no further step.
  b.port.pause(ids[0]);
  int rounds_still = 0; // a token may be delayed for one round
  for (int i = 0; i < 30 && rounds_still < 3; ++i) {
    const auto before = all[0].n_tokens();
    const auto others = all[1].n_tokens();
    plan->allow(3); // more steps than are prepared ahead
    REQUIRE(all[1].wait_tokens(others + 3));
    REQUIRE(plan->step_waits());
    std::this_thread::sleep_for(10ms); // the session may need some time
    rounds_still = all[0].n_tokens() == before ? rounds_still + 1 : 0;
  }
  REQUIRE(rounds_still == 3);
  plan->fail_at = plan->steps.load();
  plan->open();
  for (int i = 1; i <= 2; ++i) {
    REQUIRE(all[static_cast<std::size_t>(i)].wait_over());
    REQUIRE(all[static_cast<std::size_t>(i)].error());
    CHECK(all[static_cast<std::size_t>(i)].error()->code == errc::executor_failed);
  }
  b.port.resume(ids[0]);
  REQUIRE(all[0].wait_over());
  CHECK_FALSE(all[0].error());
  CHECK(all[0].text() == solo(prompt_of(0, 9), 150, 0, 0, 0, true).text);
  // Request 3 was in the queue, or had just been admitted when a paused request was preempted.
  REQUIRE(all[3].wait_over());
  if (!all[3].error()) CHECK(all[3].text() == solo(prompt_of(3, 9), 150, 0, 0, 0, true).text);
  b.port.submit(endless("after", 10), all[5].callback());
  REQUIRE(all[5].wait_over());
  CHECK(all[5].text() == solo("after", 10, 0, 0, 0, true).text);
  CHECK(b.port.stats().executor_restarts == 1);
  CHECK(plan->loads == 2);
  CHECK(b.port.state() == engine_state::ready);
  CHECK(b.no_blocks_used());
}

TEST_CASE("a device that is lost ends every request and is not opened again", "[actors]") {
  const bool by_throw = GENERATE(false, true);
  const bool by_load = GENERATE(false, true);
  config::options options;
  options.scheduler.max_running = 1;
  auto plan = std::make_shared<script>();
  plan->fail_by_throw = by_throw;
  plan->fail_at = 4;
  plan->lost = !by_load;
  plan->hold(); // until all requests were sent
  fixture b(options, plan);
  REQUIRE(b.ready());
  if (by_load) {
    plan->lost_by_load = true; // else the load that follows would recover from the failed step
    plan->failing_loads = 1;
  }
  std::vector<recorder> all(4);
  for (int i = 0; i < 4; ++i)
    b.port.submit(endless(prompt_of(i, 9), 50), all[static_cast<std::size_t>(i)].callback());
  for (recorder& r : all)
    REQUIRE(eventually([&] { return r.n_events() > 0; }));
  plan->open();
  for (recorder& r : all) {
    REQUIRE(r.wait_over());
    REQUIRE(r.error());
    // A load that loses the device follows a failed step, whose request has executor_failed.
    if (r.error()->code != errc::shutting_down)
      CHECK((by_load && r.error()->code == errc::executor_failed));
  }
  REQUIRE(eventually([&] { return b.port.state() == engine_state::lost; }));
  CHECK(b.port.state_detail().starts_with("the device is lost: "));
  std::this_thread::sleep_for(50ms); // the first retry would come at once
  CHECK(plan->loads == (by_load ? 2 : 1));
  recorder after;
  b.port.submit(endless("after", 10), after.callback());
  REQUIRE(after.wait_over());
  CHECK(after.error()->code == errc::not_ready);
  CHECK(after.error()->message.find("the device is lost") != std::string::npos);
}

TEST_CASE("a queue survives the executor's restart", "[actors]") {
  config::options options;
  options.scheduler.max_running = 1;
  auto plan = std::make_shared<script>();
  plan->fail_at = 4;
  fixture b(options, plan);
  REQUIRE(b.ready());
  std::vector<recorder> all(5);
  for (int i = 0; i < 5; ++i)
    b.port.submit(endless(prompt_of(i, 9), 30), all[static_cast<std::size_t>(i)].callback());
  int n_failed = 0; // the request that was queued first fails
  for (int i = 0; i < 5; ++i) {
    recorder& r = all[static_cast<std::size_t>(i)];
    REQUIRE(r.wait_over());
    CHECK(r.broken() == "");
    if (r.error()) {
      CHECK(r.error()->code == errc::executor_failed);
      ++n_failed;
    } else {
      CHECK(r.text() == solo(prompt_of(i, 9), 30, 0, 0, 0, true).text);
    }
  }
  CHECK(n_failed == 1);
  CHECK(plan->loads == 2);
}

TEST_CASE("an executor that keeps failing is given up and says why", "[actors]") {
  auto plan = std::make_shared<script>();
  config::options options;
  options.scheduler.restart_delay = 1ms;
  fixture b(options, plan);
  REQUIRE(b.ready());
  plan->fail_always = true;
  for (int i = 0; i < 20 && b.port.state() != engine_state::failed; ++i) {
    recorder r;
    b.port.submit(endless("fail", 10), r.callback());
    REQUIRE(r.wait_over());
    REQUIRE(r.error());
  }
  REQUIRE(eventually([&] { return b.port.state() == engine_state::failed; }));
  CHECK(b.port.state_detail().find("scripted step failure") != std::string::npos);
  recorder after;
  b.port.submit(endless("fail", 10), after.callback());
  REQUIRE(after.wait_over());
  CHECK(after.error()->code == errc::not_ready);
}

TEST_CASE("an engine that gave up tries again, and serves once the fault is gone", "[actors]") {
  auto plan = std::make_shared<script>();
  config::options options;
  options.scheduler.restart_delay = 1ms;
  options.scheduler.restart_delay_max = 30ms;
  fixture b(options, plan);
  REQUIRE(b.ready());
  plan->failing_loads = 8; // the reload, its retries, and two loads after giving up
  plan->fail_at = plan->steps.load();
  recorder r;
  b.port.submit(endless("once", 10), r.callback());
  REQUIRE(r.wait_over());
  REQUIRE(r.error());
  CHECK(r.error()->code == errc::executor_failed);
  REQUIRE(b.ready());
  CHECK(plan->loads == 10);
  recorder after;
  b.port.submit(endless("after", 10), after.callback());
  REQUIRE(after.wait_over());
  CHECK(after.text() == solo("after", 10, 0, 0, 0, true).text);
}

TEST_CASE("a request of which nothing was streamed does not notice a failed step", "[actors]") {
  auto plan = std::make_shared<script>();
  plan->fail_at = 0;
  fixture b({}, plan);
  REQUIRE(b.ready());
  recorder r;
  b.port.submit(endless("first", 10), r.callback());
  REQUIRE(r.wait_over());
  CHECK_FALSE(r.error());
  CHECK(r.broken() == "");
  CHECK(r.text() == solo("first", 10, 0, 0, 0, true).text);
  CHECK(b.port.stats().executor_restarts == 1);
}

TEST_CASE("after a restart with less memory no block of before is used", "[actors]") {
  auto plan = std::make_shared<script>();
  plan->n_blocks = 64;
  config::options options;
  options.scheduler.max_running = 4;
  fixture b(options, plan);
  REQUIRE(b.ready());
  std::vector<recorder> all(8);
  plan->hold();
  for (int i = 0; i < 8; ++i)
    b.port.submit(endless(prompt_of(i, 9), 60), all[static_cast<std::size_t>(i)].callback());
  plan->allow(20);
  REQUIRE(plan->step_waits());
  plan->n_blocks = 20;
  plan->fail_at = plan->steps.load();
  plan->open();
  int n_done = 0;
  for (int i = 0; i < 8; ++i) {
    recorder& r = all[static_cast<std::size_t>(i)];
    REQUIRE(r.wait_over());
    if (r.error()) continue;
    CHECK(r.text() == solo(prompt_of(i, 9), 60, 0, 0, 0, true).text);
    ++n_done;
  }
  CHECK(n_done >= 4);
  CHECK(plan->loads == 2); // no step failed because of a block that no longer exists
  CHECK(b.port.stats().kv_blocks_total == 20);
  CHECK(b.port.models().front().max_model_len == 80);
  recorder long_one; // sessions use the new sizes
  b.port.submit(endless("long", 100), long_one.callback());
  REQUIRE(long_one.wait_over());
  REQUIRE(long_one.error());
  CHECK(long_one.error()->code == errc::too_large);
}

TEST_CASE("the engine says that it stalls while a step does not end", "[actors]") {
  auto plan = std::make_shared<script>();
  config::options options;
  options.scheduler.watchdog = 50ms;
  fixture b(options, plan);
  REQUIRE(b.ready());
  std::this_thread::sleep_for(60ms);
  CHECK(b.port.state() == engine_state::ready); // an idle engine does not stall
  plan->hold();
  recorder r;
  b.port.submit(endless("stall", 10), r.callback());
  REQUIRE(eventually([&] { return b.port.state() == engine_state::stalled; }));
  CHECK(b.port.state_detail().find("watchdog") != std::string::npos);
  plan->open();
  REQUIRE(r.wait_over());
  CHECK(b.ready());
}

TEST_CASE("a model that cannot be loaded leaves a failed engine that answers", "[actors]") {
  auto plan = std::make_shared<script>();
  plan->failing_loads = 1;
  fixture b({}, plan);
  REQUIRE(eventually([&] { return b.port.state() == engine_state::failed; }));
  CHECK(b.port.state_detail() == "scripted load failure");
  recorder r;
  b.port.submit(endless("x", 10), r.callback());
  REQUIRE(r.wait_over());
  CHECK(r.error()->code == errc::not_ready);
  CHECK(b.port.tokenize("", {"x"}, false).code() == errc::not_ready);
  CHECK(b.port.models().empty());
}

TEST_CASE("a drain lets streams end, refuses new requests and then says so", "[actors]") {
  auto plan = std::make_shared<script>();
  plan->delay_us = 300;
  fixture b({}, plan);
  REQUIRE(b.ready());
  recorder r, late;
  b.port.submit(endless("drain", 60), r.callback());
  REQUIRE(r.wait_tokens(2));
  std::atomic<bool> drained{false};
  b.port.drain([&] { drained = true; });
  CHECK(b.port.state() == engine_state::draining);
  b.port.submit(endless("late", 5), late.callback());
  REQUIRE(late.wait_over());
  CHECK(late.error()->code == errc::shutting_down);
  REQUIRE(r.wait_over());
  CHECK(r.text() == solo("drain", 60, 0, 0, 0, true).text);
  CHECK(eventually([&] { return drained.load(); }));
}

TEST_CASE("an idle engine drains at once", "[actors]") {
  fixture b;
  REQUIRE(b.ready());
  std::atomic<bool> drained{false};
  b.port.drain([&] { drained = true; });
  CHECK(eventually([&] { return drained.load(); }));
}

TEST_CASE("abort_all ends everything with shutting_down", "[actors]") {
  auto plan = std::make_shared<script>();
  plan->delay_us = 300;
  fixture b({}, plan);
  REQUIRE(b.ready());
  std::vector<recorder> all(12);
  for (auto& r : all)
    b.port.submit(endless("abort", 150), r.callback());
  REQUIRE(all[0].wait_tokens(2));
  std::atomic<bool> drained{false};
  b.port.drain([&] { drained = true; });
  b.port.abort_all();
  for (auto& r : all) {
    REQUIRE(r.wait_over());
    REQUIRE(r.error());
    CHECK(r.error()->code == errc::shutting_down);
    CHECK(r.broken() == "");
  }
  CHECK(eventually([&] { return drained.load(); }));
  CHECK(b.no_blocks_used());
}

TEST_CASE("an idle engine sleeps", "[actors]") {
  fixture b;
  REQUIRE(b.ready());
  recorder r;
  b.port.submit(endless("work", 20), r.callback());
  REQUIRE(r.wait_over());
  std::this_thread::sleep_for(100ms);
  const auto before = std::clock();
  std::this_thread::sleep_for(1s);
  const double share = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  CHECK(share < 0.01);
}

TEST_CASE("a callback that throws costs its own request only", "[actors]") {
  auto plan = std::make_shared<script>();
  plan->delay_us = 300;
  fixture b({}, plan);
  REQUIRE(b.ready());
  recorder good;
  b.port.submit(endless("thrower", 150), [](actors::event e) {
    if (!e.tokens.empty()) throw std::runtime_error("a broken client");
  });
  b.port.submit(endless("good", 30), good.callback());
  REQUIRE(good.wait_over());
  CHECK(good.text() == solo("good", 30, 0, 0, 0, true).text);
  CHECK(eventually([&] { return b.port.stats().finished_abort == 1; }));
  CHECK(b.no_blocks_used());
}

TEST_CASE("an engine may be destroyed at any moment", "[actors]") {
  for (int round = 0; round < 12; ++round) {
    std::vector<recorder> all(20);
    std::vector<std::size_t> seen(all.size());
    const auto begun = std::chrono::steady_clock::now();
    {
      auto plan = std::make_shared<script>();
      plan->delay_us = 200;
      fixture b({}, plan);
      if (round % 3 != 0) REQUIRE(b.ready());
      for (auto& r : all)
        b.port.submit(endless("destroy", 150), r.callback());
      if (round % 3 == 2) REQUIRE(all[0].wait_tokens(2));
    }
    for (std::size_t i = 0; i < all.size(); ++i)
      seen[i] = all[i].n_events();
    std::this_thread::sleep_for(5ms);
    for (std::size_t i = 0; i < all.size(); ++i)
      CHECK(all[i].n_events() == seen[i]);
    CHECK(std::chrono::steady_clock::now() - begun < patience);
  }
}

TEST_CASE("submit, cancel, pause and resume from many threads leave nothing behind", "[actors]") {
  config::options options;
  options.scheduler.max_running = 6;
  options.scheduler.max_step_tokens = 40;
  auto plan = std::make_shared<script>();
  plan->n_blocks = 48;
  plan->max_context = 150;
  fixture b(options, plan);
  REQUIRE(b.ready());
  std::atomic<int> wrong{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      for (int i = 0; i < 40; ++i) {
        recorder r;
        const int seed = c * 100 + i;
        const auto id =
            b.port.submit(endless(prompt_of(seed, 1 + seed % 50), 1 + seed % 60), r.callback());
        if (seed % 4 == 1) {
          if (seed % 8 == 1) std::this_thread::sleep_for(2ms);
          b.port.cancel(id);
          continue;
        }
        if (seed % 4 == 2) {
          b.port.pause(id);
          std::this_thread::sleep_for(1ms);
          b.port.resume(id);
        }
        if (!r.wait_over() || r.error() || r.broken() != "" ||
            r.text() != solo(prompt_of(seed, 1 + seed % 50), 1 + seed % 60, 0, 0, 0, true).text)
          ++wrong;
      }
    });
  }
  for (auto& t : clients)
    t.join();
  CHECK(wrong == 0);
  CHECK(b.no_blocks_used());
  CHECK(eventually([&] {
    const auto s = b.port.stats();
    return s.requests_running == 0 && s.requests_waiting == 0;
  }));
}
