// Every answer of the scheduler is that of a plain twin, which keeps one list and computes
// everything anew, over random operations; and nothing is left when all have left.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/scheduling/fair_policy.hpp"
#include "tests/actors/scheduling/plain_fair_policy.hpp"
#include "tests/actors/scheduling/scheduler_rig.hpp"
#include "tests/catch.hpp"

using namespace scheduling_tests;
using twill::test::demand;
using twill::test::operations;

namespace {

template <class F>
void live_twice(scheduler_rig& rig, const operations& sequence, F&& check) {
  const bool cancels = !sequence.empty() && sequence.front().c % 2 == 0;
  for (int life = 0; life < 2; ++life) {
    for (auto o = sequence.begin(); o != sequence.end(); ++o) {
      rig.apply(*o);
      check();
    }
    cancels ? rig.cancel_all() : rig.run_to_the_end();
    rig.demand_empty();
    check();
  }
}

plan_limits limits_of(const operations& sequence) {
  if (sequence.empty()) return {};
  return scheduler_rig::any_limits(choices(sequence.front().b));
}

void add_up(std::map<std::string, std::uint64_t>& sums, const scheduler_rig& rig) {
  for (const auto& [what, n] : rig.counts)
    sums[what] += n;
}

} // namespace

TEST_CASE("a scheduler decides as its plain twin does, under ranks that change", "[scheduling]") {
  std::map<std::string, std::uint64_t> sums;
  const auto failure = twill::test::first_failure({1500, 40'000, 150}, [&](const operations& ops) {
    std::vector<std::string> told, told_twin;
    const bool shares = !ops.empty() && ops.front().a % 2 == 0;
    scheduler_rig rig(limits_of(ops), {std::make_unique<restless_policy>(told, shares),
                                       std::make_unique<restless_policy>(told_twin, shares)});
    live_twice(rig, ops, [&] {
      demand(told == told_twin, "the policy was told other things");
      told.clear();
      told_twin.clear();
    });
    add_up(sums, rig);
  });
  CHECK(failure == "");
  for (const char* what : {"rows", "reuses", "forks", "copies", "preempted", "ended", "lost"}) {
    INFO(what);
    CHECK(sums[what] > 5);
  }
}

TEST_CASE("a scheduler decides as its plain twin does, first come first served", "[scheduling]") {
  const auto failure = twill::test::first_failure({800, 40'000, 150}, [&](const operations& ops) {
    scheduler_rig rig(limits_of(ops),
                      {std::make_unique<fcfs_policy>(), std::make_unique<fcfs_policy>()});
    live_twice(rig, ops, [] {});
  });
  CHECK(failure == "");
}

TEST_CASE("a scheduler decides as its plain twin does, while clients take turns", "[scheduling]") {
  const auto failure = twill::test::first_failure({800, 40'000, 150}, [&](const operations& ops) {
    auto fair = std::make_unique<fair_policy>();
    auto plain = std::make_unique<plain_fair_policy>();
    const fair_policy& real = *fair;
    const plain_fair_policy& twin = *plain;
    scheduler_rig rig(limits_of(ops), {std::move(fair), std::move(plain)});
    live_twice(rig, ops, [&] {
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
    scheduler_rig rig(limits_of(ops),
                      {std::make_unique<fcfs_policy>(), std::make_unique<fcfs_policy>()}, scale);
    live_twice(rig, ops, [] {});
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
    scheduler_rig rig(limits, {std::make_unique<fcfs_policy>(), std::make_unique<fcfs_policy>()}, 1,
                      true);
    live_twice(rig, ops, [] {});
  });
  CHECK(failure == "");
}
