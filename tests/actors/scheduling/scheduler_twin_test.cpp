// Every answer of the scheduler over random operations equals that of a plain reference, which
// keeps one list and computes everything anew. Once all sequences have left, the scheduler holds
// nothing.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/scheduling/fair_policy.hpp"
#include "tests/actors/scheduling/plain_fair_policy.hpp"
#include "tests/actors/scheduling/scheduler_fixture.hpp"
#include "tests/catch.hpp"

using namespace scheduling_tests;
using twill::test::demand;
using twill::test::operations;

namespace {

template <class F>
void live_twice(scheduler_fixture& fixture, const operations& sequence, F&& check) {
  const bool cancels = !sequence.empty() && sequence.front().c % 2 == 0;
  for (int generation = 0; generation < 2; ++generation) {
    for (auto o = sequence.begin(); o != sequence.end(); ++o) {
      fixture.apply(*o);
      check();
    }
    cancels ? fixture.cancel_all() : fixture.run_to_the_end();
    fixture.demand_empty();
    check();
  }
}

plan_limits limits_of(const operations& sequence) {
  if (sequence.empty()) return {};
  return scheduler_fixture::any_limits(choices(sequence.front().b));
}

void add_up(std::map<std::string, std::uint64_t>& sums, const scheduler_fixture& fixture) {
  for (const auto& [what, n] : fixture.counts)
    sums[what] += n;
}

} // namespace

TEST_CASE("a scheduler decides as its plain twin does, under ranks that change", "[scheduling]") {
  std::map<std::string, std::uint64_t> sums;
  const auto failure = twill::test::first_failure({1500, 40'000, 150}, [&](const operations& ops) {
    std::vector<std::string> received, twin_calls;
    const bool shares = !ops.empty() && ops.front().a % 2 == 0;
    scheduler_fixture fixture(limits_of(ops),
                              {std::make_unique<restless_policy>(received, shares),
                               std::make_unique<restless_policy>(twin_calls, shares)});
    live_twice(fixture, ops, [&] {
      demand(received == twin_calls, "the policy was told other things");
      received.clear();
      twin_calls.clear();
    });
    add_up(sums, fixture);
  });
  CHECK(failure == "");
  for (const char* what : {"rows", "reuses", "forks", "copies", "preempted", "ended", "lost"}) {
    INFO(what);
    CHECK(sums[what] > 5);
  }
}

TEST_CASE("a scheduler decides as its plain twin does, first come first served", "[scheduling]") {
  const auto failure = twill::test::first_failure({800, 40'000, 150}, [&](const operations& ops) {
    scheduler_fixture fixture(limits_of(ops),
                              {std::make_unique<fcfs_policy>(), std::make_unique<fcfs_policy>()});
    live_twice(fixture, ops, [] {});
  });
  CHECK(failure == "");
}

TEST_CASE("a scheduler decides as its plain twin does, while clients take turns", "[scheduling]") {
  const auto failure = twill::test::first_failure({800, 40'000, 150}, [&](const operations& ops) {
    auto fair = std::make_unique<fair_policy>();
    auto plain = std::make_unique<plain_fair_policy>();
    const fair_policy& real = *fair;
    const plain_fair_policy& twin = *plain;
    scheduler_fixture fixture(limits_of(ops), {std::move(fair), std::move(plain)});
    live_twice(fixture, ops, [&] {
      twill::test::demand_equal(real.clients(), twin.clients(), "how many clients are remembered");
    });
  });
  CHECK(failure == "");
}

TEST_CASE(
    "a scheduler decides as its plain twin does, with prompts of more blocks than are looked up",
    "[scheduling]") {
  const auto failure = twill::test::first_failure({200, 20'000, 100}, [&](const operations& ops) {
    constexpr std::int32_t scale = 128;
    scheduler_fixture fixture(
        limits_of(ops), {std::make_unique<fcfs_policy>(), std::make_unique<fcfs_policy>()}, scale);
    live_twice(fixture, ops, [] {});
  });
  CHECK(failure == "");
}

TEST_CASE("a scheduler decides as its plain twin does, with choices that share few blocks",
          "[scheduling]") {
  const auto failure = twill::test::first_failure({1000, 40'000, 150}, [&](const operations& ops) {
    plan_limits limits = limits_of(ops);
    limits.block_tokens = std::min(limits.block_tokens, 2);
    limits.max_running += 2;
    limits.max_step_tokens += 8;
    scheduler_fixture fixture(
        limits, {std::make_unique<fcfs_policy>(), std::make_unique<fcfs_policy>()}, 1, true);
    live_twice(fixture, ops, [] {});
  });
  CHECK(failure == "");
}
