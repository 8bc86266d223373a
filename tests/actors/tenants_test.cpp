// Tenants through engine_port: how many requests and tokens a tenant may run, queue and use, whose
// cached prefixes it finds, how long its requests wait, and whose requests come first.
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "tests/actors/engine_fixture.hpp"
#include "tests/catch.hpp"

using namespace scripted;
using actors::errc;

namespace {

actors::request of(const std::string& tenant, const std::string& prompt, std::int32_t max_tokens) {
  auto asked = text_request(prompt, max_tokens);
  asked.sampling.ignore_eos = true;
  asked.tenant = tenant;
  asked.client = "key " + tenant;
  return asked;
}

recorder finished(fixture& b, const actors::request& asked) {
  recorder r;
  b.port.submit(asked, r.callback());
  REQUIRE(r.wait_over());
  return r;
}

} // namespace

TEST_CASE("cached prefixes are a tenant's own, and a salt divides them further", "[actors]") {
  const std::string prompt = prompt_of(1, 44);
  const auto cached = [&](fixture& b, const std::string& tenant, const std::string& salt = "") {
    auto asked = of(tenant, prompt, 3);
    asked.cache_salt = salt;
    auto r = finished(b, asked);
    CHECK_FALSE(r.error());
    CHECK(r.text() == solo(prompt, 3, 0, 0, 0, true).text);
    return r.use().cached_tokens;
  };
  fixture b;
  REQUIRE(b.ready());
  CHECK(cached(b, "alice") == 0);
  const auto before = b.plan->computed.load();
  CHECK(cached(b, "bob") == 0);
  CHECK(b.plan->computed - before >= 44); // no block of alice was reused
  CHECK(cached(b, "alice") == 40);
  CHECK(cached(b, "bob") == 40);
  CHECK(cached(b, "") == 0);
  CHECK(cached(b, "alice", "salt") == 0);
  CHECK(cached(b, "alice", "salt") == 40);
  CHECK(cached(b, "bob", "salt") == 0);

  config::options shared;
  shared.kv.share_prefixes = true;
  fixture open(shared);
  REQUIRE(open.ready());
  CHECK(cached(open, "alice") == 0);
  CHECK(cached(open, "bob") == 40);
  CHECK(cached(open, "bob", "salt") == 0);
  CHECK(cached(open, "alice", "salt") == 40);
}

TEST_CASE("a tenant's limits refuse its requests alone, at once, and say when to come back",
          "[actors]") {
  config::options options;
  options.tenants = {{"small", {}, 1, 1, 1, 0}, {"poor", {}, 1, 0, 0, 600}, {"other", {}}};
  auto plan = std::make_shared<script>();
  plan->hold();
  fixture b(options, plan);
  REQUIRE(b.ready());
  std::vector<recorder> small(3);
  for (auto& r : small)
    b.port.submit(of("small", "prompt", 5), r.callback());
  REQUIRE(small[2].wait_over()); // refused while the other two run and wait
  REQUIRE(small[2].error());
  CHECK(small[2].error()->code == errc::queue_full);
  CHECK(small[2].error()->retry_after_s >= 1);
  CHECK(small[2].error()->message.find("tenants.max_queued") != std::string::npos);
  std::vector<recorder> poor(4);
  for (auto& r : poor) { // each request is charged 180 of 600 tokens
    b.port.submit(of("poor", std::string(80, 'x'), 100), r.callback());
    REQUIRE(eventually([&] { return r.n_events() > 0; }));
  }
  REQUIRE(poor[3].error());
  CHECK(poor[3].error()->code == errc::rate_limited);
  CHECK(poor[3].error()->retry_after_s >= 10);
  CHECK(poor[3].error()->retry_after_s <= 12);
  recorder other;
  b.port.submit(of("other", "prompt", 5), other.callback());
  plan->open();
  REQUIRE(other.wait_over());
  CHECK_FALSE(other.error());
  REQUIRE(small[1].wait_over());
  CHECK_FALSE(small[1].error());
  CHECK(b.no_blocks_used());
}

TEST_CASE("a tenant without a limit to what runs queues beside all that may run", "[actors]") {
  config::options options;
  options.scheduler.max_running = 2;
  options.tenants = {{"t", {}, 1, 0, 1}};
  auto plan = std::make_shared<script>();
  plan->hold();
  fixture b(options, plan);
  REQUIRE(b.ready());
  std::vector<recorder> all(4);
  for (auto& r : all) {
    b.port.submit(of("t", "prompt", 5), r.callback());
    REQUIRE(eventually([&] { return r.n_events() > 0; }));
  }
  for (std::size_t i = 0; i < 3; ++i)
    CHECK_FALSE(all[i].error());
  REQUIRE(all[3].error());
  CHECK(all[3].error()->code == errc::queue_full);
  plan->open();
  for (auto& r : all)
    REQUIRE(r.wait_over());
}

TEST_CASE("a request that waits for longer than queue_timeout ends, one that runs does not",
          "[actors]") {
  config::options options;
  options.scheduler.max_running = 1;
  options.scheduler.queue_timeout = 100ms;
  auto plan = std::make_shared<script>();
  plan->hold();
  fixture b(options, plan);
  REQUIRE(b.ready());
  recorder runs, waits;
  b.port.submit(of("", "runs", 5), runs.callback());
  REQUIRE(plan->step_waits());
  const auto began = std::chrono::steady_clock::now();
  b.port.submit(of("", "waits", 5), waits.callback());
  REQUIRE(waits.wait_over());
  CHECK(std::chrono::steady_clock::now() - began >= 100ms);
  REQUIRE(waits.error());
  CHECK(waits.error()->code == errc::queue_timed_out);
  CHECK(waits.error()->message.find("scheduler.queue_timeout") != std::string::npos);
  CHECK(waits.error()->retry_after_s >= 1);
  plan->open();
  REQUIRE(runs.wait_over());
  CHECK_FALSE(runs.error());
}

TEST_CASE("a lower priority is served first, and fcfs refuses priorities", "[actors]") {
  config::options options;
  options.scheduler.max_running = 1;
  auto plan = std::make_shared<script>();
  plan->hold();
  fixture b(options, plan);
  REQUIRE(b.ready());
  recorder first, later, urgent;
  b.port.submit(of("t", "first", 5), first.callback());
  REQUIRE(plan->step_waits());
  auto asked = of("t", "later", 40);
  b.port.submit(asked, later.callback());
  asked = of("t", "urgent", 5);
  asked.priority = -1;
  b.port.submit(asked, urgent.callback());
  REQUIRE(eventually([&] { return later.n_events() > 0 && urgent.n_events() > 0; })); // queued
  plan->allow(20); // of the fifty that all requests need
  REQUIRE(urgent.wait_over());
  CHECK_FALSE(later.over());
  plan->open();
  REQUIRE(later.wait_over());

  options.scheduler.policy = "fcfs";
  fixture fcfs(options);
  REQUIRE(fcfs.ready());
  auto refused = finished(fcfs, asked);
  REQUIRE(refused.error());
  CHECK(refused.error()->code == errc::invalid_argument);
  CHECK(refused.error()->param == "priority");
  asked.priority = 0;
  CHECK_FALSE(finished(fcfs, asked).error());
}

TEST_CASE("a reload changes the limits of new requests, and keeps what was used", "[actors]") {
  config::options options;
  options.tenants = {{"poor", {}, 1, 0, 0, 600}};
  fixture b(options);
  REQUIRE(b.ready());
  CHECK_FALSE(finished(b, of("poor", std::string(80, 'x'), 100)).error());
  auto several = of("poor", "x", 1);
  several.sampling.n = 3;
  CHECK_FALSE(finished(b, several).error());

  options.tenants[0].tokens_per_minute = 150;
  options.limits.max_choices = 2;
  options.sampling.temperature = 0.25;
  b.engine->reload(options);
  auto refused = finished(b, of("poor", "x", 1));
  REQUIRE(refused.error());
  CHECK(refused.error()->code == errc::rate_limited);
  CHECK(refused.error()->message.find("is 150") != std::string::npos);
  CHECK(b.port.models().front().default_sampling.temperature == 0.25);

  options.tenants.clear();
  b.engine->reload(options);
  CHECK_FALSE(finished(b, of("poor", "x", 1)).error());
  refused = finished(b, several);
  REQUIRE(refused.error());
  CHECK(refused.error()->message.find("`n`") != std::string::npos);
}

TEST_CASE("a snapshot names the owner of every block, and mailboxes are counted", "[actors]") {
  config::options options;
  options.scheduler.max_running = 2;
  auto plan = std::make_shared<script>();
  plan->hold();
  fixture b(options, plan);
  REQUIRE(b.ready());
  const auto snapshot = [&] {
    auto answer = std::make_shared<std::promise<std::vector<actors::scheduler_snapshot>>>();
    auto coming = answer->get_future();
    b.port.describe([answer](auto all) { answer->set_value(std::move(all)); });
    REQUIRE(coming.wait_for(patience) == std::future_status::ready);
    const auto all = coming.get();
    REQUIRE(all.size() == 1);
    CHECK(all[0].model == "scripted");
    CHECK(all[0].orphans.empty());
    CHECK(all[0].total_blocks == plan->n_blocks);
    return all[0];
  };
  const auto depth = [&](const std::string& actor) {
    for (const auto& one : b.port.mailboxes())
      if (one.actor == actor) return one.depth;
    return std::int64_t{-1};
  };
  CHECK(snapshot().sequences.empty());
  std::vector<recorder> all(3);
  for (int i = 0; i < 3; ++i) {
    auto asked = of("t" + std::to_string(i), prompt_of(i, 10), 4);
    asked.client_id = "id-" + std::to_string(i);
    b.port.submit(asked, all[static_cast<std::size_t>(i)].callback());
    REQUIRE(
        eventually([&] { return snapshot().sequences.size() == static_cast<std::size_t>(i) + 1; }));
  }
  REQUIRE(plan->step_waits());
  const auto held = snapshot();
  std::int64_t blocks = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& one = held.sequences[i];
    CHECK(one.tenant == "t" + std::to_string(i));
    CHECK(one.client_id == "id-" + std::to_string(i));
    // Two steps are in flight, both with the first request. The others wait for a third step.
    CHECK(one.running == (i == 0));
    CHECK(one.n_blocks == (i == 0 ? 3 : 0)); // of 4 tokens each
    CHECK(one.blocks.empty() == (i > 0));
    CHECK(one.max_tokens == 14);
    blocks += one.n_blocks;
  }
  CHECK(held.used_blocks == blocks);
  CHECK(depth("executor") >= 1); // the step that waits, and perhaps the next
  plan->open();
  for (auto& r : all)
    REQUIRE(r.wait_over());
  CHECK(eventually([&] { return snapshot().sequences.empty(); }));
  CHECK_FALSE(snapshot().cached.empty());
  for (const char* actor : {"batcher", "executor", "kv_allocator", "session", "supervisor"})
    CHECK(eventually([&] { return depth(actor) == 0; }));
}
